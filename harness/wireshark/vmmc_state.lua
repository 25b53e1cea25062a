-- SPDX-License-Identifier: Apache-2.0
--
-- What the packets of a backplane are part of, for vmmc.lua, which loads this: imports, pairs of client and server, records
-- of vRPC, calls of ShrimpRPC. `format`: vmmc_fields.lua.

return function(format)

local AU, DU, NACK, PAGE, WORD = format.AU, format.DU, format.NACK, format.PAGE, format.WORD
local WRAP = 4294967296
-- A refusal comes some microseconds after what it refuses.
local REMEMBERED = 256

local state = {}
local interface_id = Field.new("frame.interface_id")
local interface_name = Field.new("frame.interface_name")

-- ---- state of a capture, of each interface by itself; filled in the first pass, in the order of frames ----

local ways      -- by interface and ordered pair of nodes: the next sequence number, the latest packets
local asked     -- requests to import
local streams   -- what is written through an import, by nodes, export and generation
local pairs_of  -- by the name of the client's export
local indices   -- of pairs, alike at all ports
local pair_count, place_count
local latest    -- the highest frame number that was analysed: tshark -2 says "visited" of frames that were not
local found     -- by frame number, for vmmc.lua

function state.init()
    ways, asked, streams, pairs_of, indices, pair_count, place_count, latest, found = {}, {}, {}, {}, {}, 0, 0, 0, {}
end

-- What is known of a frame, nil where nothing is.
function state.of(number)
    return found[number]
end

local function key(...)
    return table.concat({ ... }, "/")
end

local function note(frame)
    local known = found[frame.number]
    if not known then
        known = {}
        found[frame.number] = known
    end
    return known
end

-- ---- control messages ----

local function import(frame, message)
    asked[key(frame.interface, frame.sender, frame.receiver, message.request)] =
        { number = frame.number, time = frame.time, name = message.name }
end

local function answer(frame, message)
    local request = asked[key(frame.interface, frame.receiver, frame.sender, message.request)]
    if not request then
        note(frame).unasked = true
        return
    end
    note(frame).request = request
    request.answer = frame.number
    note({ number = request.number }).request = request
    if message.status ~= 0 then
        return
    end
    local stream = { name = request.name, use = message.use, pages = message.pages, granted = frame.number,
        own = {}, pieces = {}, taken = 0 }
    -- A server imports what the client named in its hello.
    local pair = pairs_of[key(frame.interface, frame.sender, request.name)]
    if pair then
        stream.pair, stream.replies = pair, true
    end
    streams[key(frame.interface, frame.receiver, frame.sender, message.export, message.generation)] = stream
end

function state.message(frame, message)
    if frame.number ~= latest or not frame.interface then
        return
    elseif message.type == format.IMPORT then
        import(frame, message)
    elseif message.type == format.ANSWER then
        answer(frame, message)
    end
end

-- ---- hello: what a client stores first says which export is for the replies ----

local function add_hello(frame, stream, raw)
    for place = 1, math.min(#raw, format.HELLO_BYTES - frame.offset) do
        stream.own[frame.offset + place] = raw:sub(place, place)
    end
    if frame.offset + #raw < format.HELLO_BYTES or stream.pair then
        return
    end
    for place = 1, format.HELLO_BYTES do
        stream.own[place] = stream.own[place] or "\0"
    end
    local bytes = table.concat(stream.own, "", 1, format.HELLO_BYTES)
    local name = bytes:sub(17, 48):match("^%Z*")
    if name == "" then
        return -- the welcome's way
    end
    local index = indices[key(frame.sender, name)]
    if not index then
        index, pair_count = pair_count, pair_count + 1
        indices[key(frame.sender, name)] = index
    end
    stream.pair = { index = index, place = place_count, calls = {} }
    place_count = place_count + 1
    pairs_of[key(frame.interface, frame.sender, name)] = stream.pair
    note(frame).hello = { bytes = bytes, name = name }
end

-- ---- vRPC: records in rings ----

-- `length` bytes of the ring from `at` on, and the frames that they came in; nil: they were not all seen.
local function stored(stream, at, length, parts)
    local texts = {}
    while length > 0 do
        local piece
        for place = #stream.pieces, 1, -1 do
            local one = stream.pieces[place]
            if one.at <= at and at < one.at + #one.raw then
                piece = one
                break
            end
        end
        if not piece then
            return nil
        end
        local text = piece.raw:sub(at - piece.at + 1, at - piece.at + length)
        texts[#texts + 1] = text
        if parts[#parts] ~= piece.number then
            parts[#parts + 1] = piece.number
        end
        at, length = at + #text, length - #text
    end
    return table.concat(texts)
end

-- Records up to `tail`, complete in this frame.
local function take_records(frame, stream, tail)
    local known, size = note(frame), (stream.pages - 1) * PAGE
    local filled = (tail - stream.taken) % WRAP
    known.records = {}
    while filled > 0 do
        local at, parts = stream.taken % size, {}
        local head = filled <= size and stored(stream, at, WORD, parts)
        if not head then
            known.broken, stream.taken = true, tail
            break
        end
        local length, sequence = Struct.unpack("<I4I4", head)
        local step, record = size - at, nil
        if length == format.RING_SKIP then
            record = { skip = step }
        else
            step = WORD + math.floor((length + WORD - 1) / WORD) * WORD
            local bytes = step <= filled and stored(stream, at + WORD, length, parts)
            record = { sequence = sequence, length = length, bytes = bytes or nil, parts = parts, complete = frame.number }
            for _, number in ipairs(parts) do
                note({ number = number }).record = record
            end
        end
        if step > filled or not record.skip and not record.bytes then
            known.broken, stream.taken = true, tail
            break
        end
        known.records[#known.records + 1] = record
        stream.taken, filled = (stream.taken + step) % WRAP, filled - step
    end
    stream.pieces = {}
end

local function add_vrpc(frame, stream, raw)
    if frame.offset >= PAGE then
        stream.pieces[#stream.pieces + 1] = { at = frame.offset - PAGE, raw = raw, number = frame.number }
    elseif frame.offset == format.TAIL and #raw == WORD then
        local tail = Struct.unpack("<I4", raw)
        note(frame).tail = tail
        take_records(frame, stream, tail)
    elseif frame.offset == format.HEAD and #raw == WORD then
        note(frame).head = Struct.unpack("<I4", raw)
    end
end

-- ---- ShrimpRPC: what is stored before a flag, and the flag in the last word ----

local function add_shrimp(frame, stream, raw)
    if frame.offset < PAGE then
        return
    end
    local pieces, known = stream.pieces, note(frame)
    pieces[#pieces + 1] = { raw = raw, number = frame.number }
    if frame.offset + #raw ~= stream.pages * PAGE or #raw < WORD then
        return
    end
    local flag = { number = frame.number, time = frame.time, parts = {}, bytes = -WORD, replies = stream.replies,
        word = Struct.unpack("<I2", raw:sub(-WORD)) }
    for _, piece in ipairs(pieces) do
        flag.bytes = flag.bytes + #piece.raw
        note({ number = piece.number }).flag = flag
        if piece.number ~= frame.number then
            flag.parts[#flag.parts + 1] = piece.number
        end
    end
    stream.pieces = {}
    known.flag = flag
    local calls, sequence = stream.pair and stream.pair.calls, raw:sub(-WORD + 2)
    if calls and stream.replies then
        flag.call = calls[sequence]
        if flag.call then
            flag.call.reply = flag
        end
    elseif calls then
        calls[sequence] = flag
    end
end

-- ---- a packet ----

local function add_data(frame, way, raw)
    way.recent[frame.seq % REMEMBERED] = { number = frame.number, export = frame.export, generation = frame.generation,
        offset = frame.offset, count = frame.count }
    local stream = streams[key(frame.interface, frame.sender, frame.receiver, frame.export, frame.generation)]
    if not stream then
        note(frame).unknown = true
        return
    end
    note(frame).stream = stream
    if stream.use ~= format.VRPC and stream.use ~= format.SHRIMPRPC then
        return
    end
    if frame.offset < format.HELLO_BYTES then
        add_hello(frame, stream, raw)
    elseif stream.use == format.VRPC then
        add_vrpc(frame, stream, raw)
    else
        add_shrimp(frame, stream, raw)
    end
end

-- What a refusal refuses.
local function add_refusal(frame)
    local way = ways[key(frame.interface, frame.receiver, frame.sender)]
    local first
    for _, one in pairs(way and way.recent or {}) do
        if one.export == frame.export and one.generation == frame.generation and one.offset == frame.offset
            and one.count == frame.count and not one.refused and (not first or one.number < first.number) then
            first = one
        end
    end
    if first then
        first.refused = frame.number
        note(frame).refuses = first.number
        note({ number = first.number }).refused_in = frame.number
    end
end

-- `raw`: its data, as far as they were captured.
function state.analyse(frame, raw)
    if frame.number <= latest then
        return
    end
    latest = frame.number
    local place = interface_id()
    local name = interface_name()
    if name and tostring(name):find(":fate$") then
        return -- what became of packets is not a way
    end
    frame.interface = place and place.value or 0
    local at = key(frame.interface, frame.sender, frame.receiver)
    local way = ways[at] or { next = 0, recent = {} }
    ways[at] = way
    if frame.seq ~= way.next then
        note(frame).expected = way.next
    end
    way.next = (frame.seq + 1) % WRAP
    if frame.kind == AU or frame.kind == DU then
        add_data(frame, way, raw)
    elseif frame.kind == NACK then
        add_refusal(frame)
    end
end

return state
end
