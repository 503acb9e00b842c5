"""An agent of one's own: it has its device, its prompts and its verdict, and knows nothing of cuarl but OpenAI's API.

``cuarl train --env program --program-command "python examples/agent_program/agent.py" --tasks
examples/agent_program/train.yaml`` runs it once for each episode. The device is a simulated phone; yours is whatever
your program works with.
"""

import base64
import io
import json
import os
import re

import openai
from PIL import Image

from cuarl.agent.formats.qwen3_vl.prompt import system_prompt
from cuarl.integrations.gymnasium import KINDS, CuarlEnv
from cuarl.tasks.source import load

# the shipped base was taught with this wording, and reads no other; a larger model takes what you write
SYSTEM = system_prompt("phone")
CALL = re.compile(r"<tool_call>\s*(\{.*\})\s*</tool_call>", re.S)
BUTTONS = {"Back": "back", "Home": "home"}


def picture(pixels):
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    url = "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def understood(answer):
    """What the phone is to do; None for an answer that is no action."""
    action = {"kind": "", "point": (0.0, 0.0), "to": (0.0, 0.0), "text": ""}
    try:
        said = json.loads(CALL.search(answer)[1])["arguments"]
        kind = said["action"]
        action["point"] = [x / 1000 for x in said.get("coordinate", (0, 0))]
        action["to"] = [x / 1000 for x in said.get("coordinate2", (0, 0))]
        action["text"] = str(said.get("text", ""))[:64]
        name = {"terminate": "finish", "system_button": BUTTONS.get(said.get("button"), "")}.get(kind, kind)
        return {**action, "kind": KINDS.index(name)}
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def main():
    name, seed = json.loads(os.environ["CUARL_TASK"])["params"]["phone"], int(os.environ["CUARL_SEED"])
    client = openai.OpenAI()  # OPENAI_BASE_URL and OPENAI_API_KEY are set
    phone = CuarlEnv(load([name], role=None).tasks, max_turns=10)
    pixels, info = phone.reset(seed=seed % 2**31)
    goal = info["goal"]
    over, reward, kind = False, 0.0, ""
    while not over:
        # this base is shown the present screen alone; others may want the conversation so far
        shown = [picture(pixels), {"type": "text", "text": goal}]
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": shown}]
        reply = client.chat.completions.create(model=os.environ["CUARL_MODEL"], messages=messages, max_tokens=128)
        answer = reply.choices[0].message.content
        action = understood(answer)
        kind = "" if action is None else KINDS[action["kind"]]
        if action is None:
            break
        pixels, reward, terminated, truncated, _ = phone.step(action)
        over = terminated or truncated
    phone.close()
    print(json.dumps({"success": reward == 1.0 and kind == "finish"}))


if __name__ == "__main__":
    main()
