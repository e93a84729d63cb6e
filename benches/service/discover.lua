-- Ranks the skills for requests of people, one after the other.

local folder = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local figures = dofile(folder .. "/figures.lua")
setup, response, done = figures.setup, figures.response, figures.done

local intents = {
    "turn a pdf into a table", "write release notes since the last tag", "review this pull request for security",
    "what changed in the api between two versions", "summarize the meeting and list the decisions",
    "find secrets that somebody committed", "make a chart of last month's sales", "migrate the database schema",
    "explain this regular expression", "deploy the service to kubernetes", "draft an answer to an angry customer",
    "profile a slow query", "translate the interface into german", "design a landing page",
    "check the licenses of the dependencies", "convert csv files to json",
}
local headers = { ["content-type"] = "application/json" }
local at = 0

function request()
    at = at + 1
    return wrk.format("POST", nil, headers, '{"intent": "' .. intents[at % #intents + 1] .. '"}')
end
