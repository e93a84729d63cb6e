-- Asks for the same thing again and again.

local folder = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local figures = dofile(folder .. "/figures.lua")
setup, response, done = figures.setup, figures.response, figures.done
