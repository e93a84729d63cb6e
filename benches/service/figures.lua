-- What every script shares: counts of answers that are not as expected, and one line of figures at the end.

local figures = { threads = {} }

function figures.setup(thread)
    thread:set("number", #figures.threads)
    table.insert(figures.threads, thread)
end

function figures.response(status)
    if status ~= tonumber(os.getenv("EXPECTED")) then
        wrong = (wrong or 0) + 1
        first_wrong = first_wrong or status
    end
end

function figures.done(summary, latency)
    local errors, seen = 0, ""
    for _, thread in ipairs(figures.threads) do
        errors = errors + (thread:get("wrong") or 0)
        local status = thread:get("first_wrong")
        if status then seen = " (" .. status .. ")" end
    end
    local lost = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
    io.write(string.format(
        "figures %d %.0f %.2f %.2f %.0f %d of %d%s, %d lost\n",
        summary.requests,
        summary.requests / (summary.duration / 1e6),
        latency:percentile(50) / 1000,
        latency:percentile(99) / 1000,
        summary.requests > 0 and summary.bytes / summary.requests or 0,
        errors, summary.requests, seen, lost
    ))
end

return figures
