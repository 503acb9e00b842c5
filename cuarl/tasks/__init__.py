"""Tasks: what to do, how the device starts, how to tell that it is done.

task          the values: Task (a template) and TaskInstance
files         task files, by way of raw, text_format, yaml_format, json_format and build
suites        folders of task files, shipped or the user's; library finds tasks in them by name
source        from what was typed after --tasks to a Selection; recipe has the JSON task sources
select        filters
check         verdicts, by way of operators, paths, side_effects and queries (the recipe's validators)
review        what is wrong with tasks that load
schema        JSON Schemas for editors
"""
