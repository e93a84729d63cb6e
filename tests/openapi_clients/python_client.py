"""Walks from a request to a completed run with the client that openapi-python-client generated."""

import sys

sys.path.insert(0, ".")

from python_client import Client
from python_client.api.run import run_approve, run_settle, run_show
from python_client.api.skill import skill_discover, skill_execute
from python_client.models import Answer, Code, Problem, RunApproveBody, SkillDiscoverBody, SkillExecuteBody
from python_client.models.run_state import RunState


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


client = Client(base_url=sys.argv[1])
body = SkillDiscoverBody(intent="book this invoice of a supplier")
answer = skill_discover.sync(client=client, body=body)
expect(isinstance(answer, Answer) and answer.results, answer)
skill = answer.results[0].skill_id
expect(skill == "invoice-intake", skill)

refused = skill_execute.sync(skill, client=client, body=SkillExecuteBody())
expect(isinstance(refused, Problem), refused)
expect((refused.status, refused.error.code) == (428, Code.CONFIRMATION_REQUIRED), refused)
run_id = refused.error.reason["run_id"]

waiting = run_show.sync(run_id, client=client).run
expect(waiting.state == RunState.WAITING_FOR_HUMAN, waiting.state)
gate = waiting.gate.human
decision = RunApproveBody(step=gate.step, inputs_digest=gate.inputs_digest, notes="by a generated client")
approved = run_approve.sync(run_id, client=client, body=decision)
expect(not isinstance(approved, Problem), approved)

run = run_settle.sync(run_id, client=client)
expect(run.state == RunState.COMPLETED and run.outputs, run)
unknown = skill_execute.sync("no-such-skill", client=client, body=SkillExecuteBody())
expect(isinstance(unknown, Problem) and unknown.error.code == Code.NOT_FOUND, unknown)
print(f"ok: openapi-python-client: {skill}, run {run_id} {run.state}")
