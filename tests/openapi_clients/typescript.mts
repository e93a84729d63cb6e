// Walks from a request to a completed run with the types that openapi-typescript generated, by openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

function expect(holds: unknown, what: unknown): asserts holds {
    if (!holds) throw new Error(JSON.stringify(what));
}

const client = createClient<paths>({ baseUrl: process.argv[2] });
const found = await client.POST("/v1/skills/discover", { body: { intent: "book this invoice of a supplier" } });
expect(found.data, found.error);
const skill = found.data.results[0].skill_id;
expect(skill === "invoice-intake", skill);

const refused = await client.POST("/v1/skills/{skill_id}/execute", {
    params: { path: { skill_id: skill } },
    body: {},
});
expect(refused.error && refused.response.status === 428, refused.data);
expect(refused.error.error.code === "confirmation_required", refused.error);
const { run_id } = refused.error.error.reason as { run_id: string };

const path = { run_id };
const waiting = await client.GET("/v1/runs/{run_id}", { params: { path } });
expect(waiting.data, waiting.error);
const gate = waiting.data.run.gate;
expect(gate && "human" in gate, waiting.data.run);
const { step, inputs_digest } = gate.human;
const approved = await client.POST("/v1/runs/{run_id}/approve", {
    params: { path },
    body: { step, inputs_digest, notes: "by a generated client" },
});
expect(approved.data, approved.error);

const settled = await client.POST("/v1/runs/{run_id}/settle", { params: { path } });
expect(settled.data?.state === "completed", settled.data ?? settled.error);
console.log(`ok: openapi-typescript: ${skill}, run ${run_id} ${settled.data.state}`);
