-- Launches runs, each under an idempotency key of its own.

local folder = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local figures = dofile(folder .. "/figures.lua")
setup, response, done = figures.setup, figures.response, figures.done

local prefix = os.getenv("SERVICE_PREFIX")
local at = 0

function request()
    at = at + 1
    local headers = {
        ["content-type"] = "application/json",
        ["x-idempotency-key"] = prefix .. "-" .. number .. "-" .. at,
    }
    return wrk.format("POST", nil, headers, '{"inputs": {"n": ' .. at .. "}}")
end
