-- SPDX-License-Identifier: Apache-2.0
--
-- Which reply is of which call of gRPC, and how long the call took: Wireshark's own dissectors of HTTP/2 and gRPC do not
-- link the two halves of a stream. Display filters: README.md.
--
-- A dissector that runs behind all others, on what they have found.

-- The installed loader and `sundial open` may both load it.
if sundial_grpc_is_loaded then
    return
end
sundial_grpc_is_loaded = true

local grpc_call = Proto("grpc_call", "gRPC call")

local F = {
    stream = ProtoField.uint32("grpc_call.stream", "Stream"),
    method = ProtoField.string("grpc_call.method", "Method"),
    reply_in = ProtoField.framenum("grpc_call.reply_in", "Reply in", base.NONE, frametype.RESPONSE),
    request_in = ProtoField.framenum("grpc_call.request_in", "Request in", base.NONE, frametype.REQUEST),
    time = ProtoField.relative_time("grpc_call.time", "Time from the request's first frame to the reply's last"),
}
for _, field in pairs(F) do
    table.insert(grpc_call.fields, field)
end

local tcp_stream, streams, paths = Field.new("tcp.stream"), Field.new("http2.streamid"), Field.new("http2.headers.path")
local clients, calls
local NS_PER_S = 1e9

function grpc_call.init()
    clients, calls = {}, {}
end

-- The streams of a packet but that of the connection itself, each once.
local function numbers()
    local found, seen = {}, {}
    for _, field in ipairs({ streams() }) do
        local number = field.value
        if number ~= 0 and not seen[number] then
            seen[number] = true
            table.insert(found, number)
        end
    end
    return found
end

-- A call begins with its first packet that was dissected, and ends with the last one from the server.
local function learn(call, asked, pinfo, method)
    local here = { number = pinfo.number, time = pinfo.rel_ts }
    if asked then
        call.request = call.request or here
        call.method = call.method or method
    else
        call.reply = here
    end
end

local function show(root, call, asked, pinfo, number)
    local tree = root:add(grpc_call)
    tree:append_text(", stream " .. number .. (call.method and ", " .. call.method or ""))
    tree:add(F.stream, number):set_generated()
    if call.method then
        tree:add(F.method, call.method):set_generated()
    end
    if asked and call.reply then
        tree:add(F.reply_in, call.reply.number):set_generated()
    elseif not asked and call.request then
        tree:add(F.request_in, call.request.number):set_generated()
        if call.reply.number == pinfo.number then
            local ns = math.floor((call.reply.time - call.request.time) * NS_PER_S + 0.5)
            tree:add(F.time, NSTime.new(math.floor(ns / NS_PER_S), ns % NS_PER_S)):set_generated()
        end
    end
end

function grpc_call.dissector(_, pinfo, root)
    local found = numbers()
    if #found == 0 then
        return
    end
    local connection, path = tostring(tcp_stream()), paths()
    if path then
        clients[connection] = pinfo.src_port
    end
    local asked = clients[connection] == pinfo.src_port
    local methods = { paths() }
    for place, number in ipairs(found) do
        local key = connection .. "/" .. number
        local call = calls[key] or {}
        calls[key] = call
        if not pinfo.visited then
            -- Where a packet has several requests, each has its headers.
            learn(call, asked, pinfo, #methods == #found and methods[place].value or nil)
        end
        show(root, call, asked, pinfo, number)
    end
end

register_postdissector(grpc_call)
