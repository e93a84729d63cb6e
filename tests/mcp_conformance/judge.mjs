// Holds the checks of the conformance suite against those that are expected to fail: judge.mjs EXPECTED RESULTS LOG.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [expectedFile, results, log] = process.argv.slice(2);
const lines = readFileSync(expectedFile, 'utf8').split('\n');
const expected = new Set(lines.map((line) => line.trim()).filter((line) => line && !line.startsWith('#')));

const failed = new Map();
const warnings = [];
let passed = 0;
const folders = readdirSync(results).filter((folder) => existsSync(join(results, folder, 'checks.json')));
for (const folder of folders) {
    // A folder is `server-SCENARIO-TIME`.
    const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]*Z$/, '');
    for (const check of JSON.parse(readFileSync(join(results, folder, 'checks.json'), 'utf8'))) {
        const name = `${scenario} ${check.id}`;
        if (check.status === 'SUCCESS') passed += 1;
        if (check.status === 'FAILURE') failed.set(name, check.errorMessage ?? check.description);
        if (check.status === 'WARNING') warnings.push(`${name}: ${check.errorMessage ?? check.description}`);
    }
}

const wrong = [];
for (const [name, why] of failed) if (!expected.has(name)) wrong.push(`${name} failed: ${why}`);
for (const name of expected) if (!failed.has(name)) wrong.push(`${name} is expected to fail and did not`);
// A suite that broke off half-way has proven nothing.
const announced = new Set(readFileSync(log, 'utf8').match(/(?<==== Running scenario: )\S+/g) ?? []);
if (announced.size === 0 || announced.size > folders.length) {
    wrong.push(`${announced.size} scenarios began, ${folders.length} left results`);
}
// What clients warn of is a fault of ours even where no check looks.
for (const line of new Set(readFileSync(log, 'utf8').match(/^unknown format.*$/gm) ?? [])) wrong.push(line);

for (const warning of warnings) console.log(`warning: ${warning}`);
for (const line of wrong) console.error(line);
console.log(`${folders.length} scenarios, ${passed} checks passed, ${failed.size} failed (${expected.size} expected), ${warnings.length} warnings`);
process.exit(wrong.length === 0 ? 0 : 1);
