"""Drives the MCP server with the official Python client (PyPI `mcp`), over stdio and streamable HTTP.

Usage: check.py PATH/TO/skills. The client itself checks every structured answer against the tool's schema.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile

from mcp import Client, MCPError, StdioServerParameters, types

MODES = ["legacy", "2026-07-28"]


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def text(result):
    """A short answer, which is text alone."""
    expect(not result.is_error and result.structured_content is None, result)
    return json.loads(result.content[0].text)


def body(result):
    """The error body of a tool's failure."""
    expect(result.is_error, f"no error: {result}")
    return json.loads(result.content[0].text)["error"]


async def drive(name, server, mode):
    asked = []
    answer = types.ElicitResult(action="accept", content={"notes": "python"})

    async def person(_context, params):
        asked.append(params.message)
        return answer

    async with Client(server, mode=mode, elicitation_callback=person, read_timeout_seconds=60) as client:
        tools = (await client.list_tools()).tools
        expect(len(tools) == 31, [tool.name for tool in tools])
        found = await client.call_tool("skill.discover", {"intent": "profile a csv file"})
        expect(text(found)["results"][0]["skill_id"] == "csv-profile", found)
        for tool, arguments in [
            ("runtime.health", {}),
            ("skill.list", {}),
            ("skill.describe", {"skill_id": "csv-profile"}),
            ("skill.why", {"skill_id": "csv-profile", "intent": "profile a csv file"}),
            ("skill.draft", {"skill_id": "csv-profile", "description": "Profiles CSV files."}),
            ("skill.diagnostics", {}),
            ("skill.governance.list", {}),
        ]:
            expect(text(await client.call_tool(tool, arguments)), tool)
            result = await client.call_tool(tool, {**arguments, "explain": True})
            expect(not result.is_error and result.structured_content, f"{tool}: {result}")
        near = body(await client.call_tool("skill.describe", {"skill_id": "csv-profil"}))
        expect((near["code"], near["suggestions"][0]) == ("not_found", "csv-profile"), near)

        loaded = await client.call_tool("skills.load", {"names": ["csv-profile"]})
        expect(text(loaded)["active"][0]["body"], "the body comes in the result")
        session = loaded.meta["session_id"]
        read = await client.call_tool("skills.read", {"path": "SKILL.md", "session_id": session})
        expect("csv-profile" in text(read)["content"], read)

        ran = await client.call_tool("skill.execute", {"skill_id": "invoice-intake"})
        expect(not ran.is_error, ran.content)
        expect(text(ran)["run"]["state"] == "completed", ran.content)
        expect(len(asked) == 1 and "invoice-intake" in asked[0], asked)
        answer = types.ElicitResult(action="decline")
        denied = body(await client.call_tool("skill.execute", {"skill_id": "invoice-intake"}))
        expect(denied["reason"]["state"] == "canceled", denied)

        resources = (await client.list_resources()).resources
        main = next(one for one in resources if str(one.uri) == "skill://csv-profile/SKILL.md")
        source = (await client.read_resource(str(main.uri))).contents[0].text
        expect(source.startswith("---\nname: csv-profile"), source[:40])
        expect(len((await client.list_resource_templates()).resource_templates) == 2, "two templates")
        await client.list_prompts()
        for uri in ["skill://csv-profile/../x", "skill://nope/SKILL.md"]:
            try:
                await client.read_resource(uri)
            except MCPError:
                continue
            raise AssertionError(f"{uri} was read")
        print(f"ok: {name}, {mode}: revision {client.protocol_version}")


async def over_stdio(binary, environment):
    for mode in MODES:
        server = StdioServerParameters(command=binary, args=["--demo", "mcp"], env=environment)
        await drive("stdio", server, mode)


async def over_http(binary, environment):
    command = [binary, "--demo", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        url = json.loads(process.stdout.readline())["address"] + "/mcp"
        for mode in MODES:
            await drive("http", url, mode)
    finally:
        process.terminate()
        expect(process.wait(timeout=30) == 0, "the service did not shut down cleanly")


def main():
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}
        asyncio.run(over_stdio(sys.argv[1], environment))
        asyncio.run(over_http(sys.argv[1], environment))


if __name__ == "__main__":
    main()
