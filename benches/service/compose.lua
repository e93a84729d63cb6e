-- Composes the next call of a session.

local folder = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local figures = dofile(folder .. "/figures.lua")
setup, response, done = figures.setup, figures.response, figures.done

function request()
    return wrk.format("POST", nil, { ["content-type"] = "application/json" }, "{}")
end
