-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark dissector of RPyC 4, 5 and 6: frames of a TCP stream, the brine inside, and which reply is of which request.
-- Installation and display filters: README.md.
--
-- Ids of objects are texts: an address needs more digits than a field of Lua can be given.

-- The installed loader and `sundial open` may both load it.
if sundial_rpyc_is_loaded then
    return
end
sundial_rpyc_is_loaded = true

local rpyc = Proto("rpyc", "RPyC")

local KINDS = { [1] = "request", [2] = "reply", [3] = "exception" }
local HANDLERS = { [1] = "PING", [2] = "CLOSE", [3] = "GETROOT", [4] = "GETATTR", [5] = "DELATTR", [6] = "SETATTR", [7] = "CALL",
    [8] = "CALLATTR", [9] = "REPR", [10] = "STR", [11] = "CMP", [12] = "HASH", [13] = "DIR", [14] = "PICKLE", [15] = "DEL",
    [16] = "INSPECT", [17] = "BUFFITER", [18] = "OLDSLICING", [19] = "CTXEXIT", [20] = "INSTANCECHECK" }
local HEADER, AROUND, REQUEST, VALUE = 5, 6, 1, 1
local DEPTH, SHOWN = 40, 200

local F = {
    length = ProtoField.uint32("rpyc.length", "Length of the data"),
    compressed = ProtoField.uint8("rpyc.compressed", "Compressed (zlib)"),
    form = ProtoField.string("rpyc.form", "Form", base.NONE, "RPyC 6 has the kind before the brine"),
    kind = ProtoField.uint8("rpyc.kind", "Kind", base.DEC, KINDS),
    seq = ProtoField.uint32("rpyc.seq", "Number of the request"),
    handler = ProtoField.uint32("rpyc.handler", "Handler", base.DEC, HANDLERS),
    body = ProtoField.string("rpyc.body", "Body"),
    class = ProtoField.string("rpyc.class", "Class of an object that is passed or named"),
    object = ProtoField.string("rpyc.object", "Its id"),
    attribute = ProtoField.string("rpyc.attribute", "Attribute"),
    reply_in = ProtoField.framenum("rpyc.reply_in", "Reply in", base.NONE, frametype.RESPONSE),
    request_in = ProtoField.framenum("rpyc.request_in", "Request in", base.NONE, frametype.REQUEST),
}
for _, field in pairs(F) do
    table.insert(rpyc.fields, field)
end
local malformed = ProtoExpert.new("rpyc.malformed", "Not brine", expert.group.MALFORMED, expert.severity.ERROR)
rpyc.experts = { malformed }
rpyc.prefs.ports = Pref.range("TCP ports", "18861-18862", "Of servers", 65535)

local stream_of = Field.new("tcp.stream")
local requests, replies

function rpyc.init()
    requests, replies = {}, {}
end

-- ---- brine: a value is a table with its text, and what else it is ----

local decode

-- The number of values or bytes by the place of a tag among the six of its type, and where it ends.
local function count_of(range, at, place)
    if place < 4 then
        return place + 1, at
    elseif place == 4 then
        return range(at, 1):uint(), at + 1
    end
    return range(at, 4):uint(), at + 4
end

local function tuple(range, at, place, depth)
    local count, items, texts = nil, {}, {}
    count, at = count_of(range, at, place)
    for number = 1, count do
        items[number], at = decode(range, at, depth + 1)
        texts[number] = items[number].text
    end
    return { text = "(" .. table.concat(texts, ", ") .. (count == 1 and ",)" or ")"), items = items }, at
end

local CONSTANTS = { [0] = "None", [1] = "b''", [2] = "()", [3] = "True", [4] = "False", [5] = "NotImplemented", [6] = "Ellipsis" }
local AROUND_A_TUPLE = { [0x19] = "slice", [0x1a] = "frozenset" }

decode = function(range, at, depth)
    local tag = range(at, 1):uint()
    at = at + 1
    if depth > DEPTH then
        error("values too deep in one another")
    elseif tag >= 0x20 and tag < 0xf0 then
        return { text = tostring(tag - 0x50), int = tag - 0x50 }, at
    elseif CONSTANTS[tag] then
        return { text = CONSTANTS[tag], items = tag == 2 and {} or nil, bytes = tag == 1 and "" or nil }, at
    elseif tag == 0x08 then
        local value
        value, at = decode(range, at, depth + 1)
        return { text = "'" .. (value.bytes or error("a text without bytes")) .. "'", string = value.bytes }, at
    elseif tag >= 0x0a and tag <= 0x0f then
        local count
        count, at = count_of(range, at, tag - 0x0a)
        local bytes = count == 0 and "" or range(at, count):string()
        return { text = "b'" .. bytes .. "'", bytes = bytes }, at + count
    elseif tag >= 0x10 and tag <= 0x15 then
        return tuple(range, at, tag - 0x10, depth)
    elseif tag == 0x16 or tag == 0x17 then
        local count
        count, at = count_of(range, at, tag - 0x12)
        local digits = range(at, count):string()
        return { text = digits, int = tonumber(digits) }, at + count
    elseif tag == 0x18 then
        return { text = tostring(range(at, 8):float()) }, at + 8
    elseif tag == 0x1b then
        return { text = string.format("(%s%+gj)", tostring(range(at, 8):float()), range(at + 8, 8):float()) }, at + 16
    elseif tag == 0x09 then
        return decode(range, at, depth + 1)
    elseif AROUND_A_TUPLE[tag] then
        local value
        value, at = decode(range, at, depth + 1)
        return { text = AROUND_A_TUPLE[tag] .. (value.items and value.text or error("no tuple inside")) }, at
    end
    error(string.format("tag 0x%02x", tag))
end

-- ---- what a message says ----

-- References in a box: label 3 names an object of the receiver, 4 passes one of the sender.
local function references(tree, range, boxed)
    local label, value = boxed.items and boxed.items[1], boxed.items and boxed.items[2]
    if not label or not value then
        return
    elseif label.int == 2 then
        for _, item in ipairs(value.items or {}) do
            references(tree, range, item)
        end
    elseif label.int == 3 or label.int == 4 then
        local parts = value.items
        if not parts then
            tree:add(F.object, range, value.text)
        elseif parts[1].string then
            tree:add(F.class, range, parts[1].string)
            tree:add(F.object, range, parts[3].text)
        else
            tree:add(F.class, range, parts[3].string .. "." .. parts[2].string)
            tree:add(F.object, range, parts[1].text)
        end
    end
end

local function attribute(tree, range, handler, boxed)
    local arguments = boxed.items and boxed.items[2]
    local name = (handler == 4 or handler == 8) and arguments and arguments.items and arguments.items[2]
    if name and name.items and name.items[2] and name.items[2].string then
        tree:add(F.attribute, range, name.items[2].string)
        return " " .. name.items[2].string
    end
    return ""
end

local function link(tree, pinfo, kind, seq)
    local stream = stream_of()
    local asked = kind == REQUEST
    local port = asked and pinfo.src_port or pinfo.dst_port
    local key = string.format("%s/%d/%s/%d", tostring(stream), port, tostring(asked and pinfo.src or pinfo.dst), seq)
    local own, other = asked and requests or replies, asked and replies or requests
    if not pinfo.visited and not own[key] then
        own[key] = pinfo.number
    end
    if other[key] then
        tree:add(asked and F.reply_in or F.request_in, other[key]):set_generated()
    end
end

local function message(tvb, range, tree, pinfo)
    local first = range(0, 1):uint()
    local bare = first >= 1 and first <= 3
    tree:add(F.form, range(0, 1), bare and "6" or "4 or 5")
    local whole, ended = decode(range, bare and 1 or 0, 0)
    if ended ~= range:len() then
        error((range:len() - ended) .. " bytes behind the value")
    end
    local parts = whole.items
    local kind = bare and first or parts[1].int
    local number, body = parts[bare and 1 or 2], parts[bare and 2 or 3]
    tree:add(F.kind, range(0, 1), kind)
    tree:add(F.seq, range, number.int)
    local text = (KINDS[kind] or "kind " .. kind) .. " " .. number.text
    if kind == REQUEST then
        local handler = body.items[1].int
        tree:add(F.handler, range, handler)
        text = (HANDLERS[handler] or "handler " .. handler) .. " " .. number.text
        references(tree, range, body.items[2])
        text = text .. attribute(tree, range, handler, body.items[2])
    elseif body.items then
        references(tree, range, body)
        if body.items[1].int == VALUE and #body.items[2].text <= 24 then
            text = text .. " " .. body.items[2].text
        end
    end
    tree:add(F.body, range, body.text:sub(1, SHOWN))
    link(tree, pinfo, kind, number.int)
    return text
end

-- Wireshark 4.4 has given the method another name; asking for one that is not there is an error.
local function inflated(range)
    local fine, whole = pcall(function()
        return range:uncompress_zlib("RPyC, inflated")
    end)
    return fine and whole or range:uncompress("RPyC, inflated")
end

local function pdu(tvb, pinfo, root)
    local length, compressed = tvb(0, 4):uint(), tvb(4, 1):uint()
    local tree = root:add(rpyc, tvb(0, length + AROUND))
    tree:add(F.length, tvb(0, 4))
    tree:add(F.compressed, tvb(4, 1))
    local range = tvb(HEADER, length)
    if compressed == 1 then
        range = inflated(range)
    end
    local fine, text = pcall(message, tvb, range, tree, pinfo)
    if not fine then
        tree:add_proto_expert_info(malformed, tostring(text))
        text = "malformed"
    end
    tree:append_text(", " .. text)
    pinfo.cols.info:append((tostring(pinfo.cols.info) == "" and "" or ", ") .. text)
    return length + AROUND
end

function rpyc.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "RPyC"
    pinfo.cols.info:clear()
    dissect_tcp_pdus(tvb, root, HEADER, function(part, _, offset)
        return part(offset, 4):uint() + AROUND
    end, pdu)
    return tvb:len()
end

local registered = ""
function rpyc.prefs_changed()
    local ports = DissectorTable.get("tcp.port")
    if registered ~= "" then
        ports:remove(registered, rpyc)
    end
    registered = rpyc.prefs.ports
    ports:add(registered, rpyc)
end
registered = rpyc.prefs.ports
DissectorTable.get("tcp.port"):add(registered, rpyc)
