"""Walks from a request to a completed run with the client that openapi-generator generated."""

import sys

import generator_client as api
from generator_client.exceptions import ApiException


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


with api.ApiClient(api.Configuration(host=sys.argv[1])) as client:
    skills, runs = api.SkillApi(client), api.RunApi(client)
    answer = skills.skill_discover(api.SkillDiscoverRequest(intent="book this invoice of a supplier"))
    skill = answer.results[0].skill_id
    expect(skill == "invoice-intake", answer)
    try:
        skills.skill_execute(skill, skill_execute_request=api.SkillExecuteRequest())
        raise AssertionError("it waits for a person")
    except ApiException as refused:
        problem = refused.data
        expect(refused.status == 428 and problem.error.code == api.Code.CONFIRMATION_REQUIRED, problem)
    run_id = problem.error.reason["run_id"]
    waiting = runs.run_show(run_id).run
    expect(waiting.state == api.RunState.WAITING_FOR_HUMAN, waiting)
    gate = waiting.gate.actual_instance.human
    decision = api.RunApproveRequest(step=gate.step, inputs_digest=gate.inputs_digest, notes="by a generated client")
    runs.run_approve(run_id, run_approve_request=decision)
    run = runs.run_settle(run_id)
    expect(run.state == api.RunState.COMPLETED and run.outputs, run)
    print(f"ok: openapi-generator: {skill}, run {run_id} {run.state.value}")
