from tests.unit.store import databases

empty_url = databases.empty_url
flaky_server = databases.flaky_server
postgres_tables = databases.postgres_tables
sqlite_store = databases.sqlite_store
sqlite_tables = databases.sqlite_tables
sqlite_url = databases.sqlite_url
store = databases.store
url = databases.url
