-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark dissector of a SHRIMP backplane's packets (link type 148; harness/clock/README.md), of the kernels' messages,
-- and of what goes over imports that say what they are for: vRPC, whose messages are handed to Wireshark's own dissector of
-- Sun RPC, and ShrimpRPC. Installation and display filters: README.md.
--
-- A capture of Sundial holds a packet at each of the two ports that it passed, so state is kept for each interface by itself.

-- The installed loader and `sundial open` may both load it.
if sundial_vmmc_is_loaded then
    return
end
sundial_vmmc_is_loaded = true

local directory = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local format = dofile(directory .. "vmmc_fields.lua")
local state = dofile(directory .. "vmmc_state.lua")(format)

local AU, DU, CONTROL, NACK = format.AU, format.DU, format.CONTROL, format.NACK
local HEADER, PAGE, WORD, SHRIMP_SEQUENCE = format.HEADER, format.PAGE, format.WORD, 6

local vmmc = Proto("vmmc", "Virtual Memory-Mapped Communication")

local F, E = format.fields, format.experts
for _, field in pairs(F) do
    table.insert(vmmc.fields, field)
end
for _, item in pairs(E) do
    table.insert(vmmc.experts, item)
end
vmmc.init = state.init
vmmc.prefs.rpc = Pref.bool("Dissect Sun RPC", true, "Hand messages of vRPC to Wireshark's own dissector")

local rpc_dissector = Dissector.get("rpc")

local function seconds(time)
    local whole = math.floor(time)
    return NSTime.new(whole, math.floor((time - whole) * 1e9 + 0.5))
end

local function has(bits, flag)
    return math.floor(bits / flag) % 2 == 1
end

-- ---- the header ----

local function add_flags(tree, range, frame)
    local item = tree:add(F.flags, range)
    item:add(F.notify, range)
    item:add(F.last, range)
    item:add(F.reserved, range)
    local notify, last = has(frame.flags, format.NOTIFY), has(frame.flags, format.LAST)
    local names = {}
    names[#names + 1] = notify and "NOTIFY" or nil
    names[#names + 1] = last and "LAST" or nil
    local right = frame.flags < 4
    if frame.kind == AU then
        right = right and not last
    elseif frame.kind == DU then
        right = right and (last or not notify)
    else
        right = frame.flags == 0
    end
    if not right then
        item:add_proto_expert_info(E.flags)
    end
    return names
end

-- The ranges of all fields that `places` has, by name.
local function parts(tvb, places)
    local found = {}
    for name, place in pairs(places) do
        found[name] = tvb(place[1], place[2])
    end
    return found
end

local function add_header(part, tree, frame)
    local kind = tree:add(F.kind, part.kind)
    if not format.kinds[frame.kind] then
        kind:add_proto_expert_info(E.kind)
    end
    frame.names = add_flags(tree, part.flags, frame)
    local reason = tree:add(F.reason, part.reason)
    if frame.kind == AU and not format.reasons[frame.reason] or frame.kind ~= AU and frame.reason ~= 0 then
        reason:add_proto_expert_info(E.reason)
    end
    tree:add_le(F.src, part.sender)
    tree:add_le(F.dst, part.receiver)
    tree:add_le(F.node, part.sender):set_hidden()
    tree:add_le(F.node, part.receiver):set_hidden()
    local items = { seq = tree:add_le(F.seq, part.sequence) }
    tree:add_le(F.export, part.export)
    tree:add_le(F.generation, part.generation)
    items.offset = tree:add_le(F.offset, part.offset)
    items.length = tree:add_le(F.length, part.length)
    tree:add_le(frame.kind == AU and F.stores or frame.kind == DU and F.transfer or F.count, part.count)
    return items
end

local function info(frame)
    local text = string.format("%u \226\134\146 %u %s", frame.sender, frame.receiver,
        format.kinds[frame.kind] or string.format("kind %u", frame.kind))
    if #frame.names > 0 then
        text = text .. " [" .. table.concat(frame.names, ", ") .. "]"
    end
    text = text .. " Seq=" .. frame.seq
    if frame.kind ~= CONTROL then
        text = string.format("%s Export=%u.%u Offset=%u Len=%u", text, frame.export, frame.generation, frame.offset,
            frame.length)
    end
    if frame.kind == AU then
        text = text .. " (" .. (format.reasons[frame.reason] or frame.reason) .. ")"
    end
    return text
end

-- ---- control messages ----

local function add_message(tvb, pinfo, tree, frame)
    local part = parts(tvb, format.message_at)
    local item = tree:add_le(F.type, part.type)
    local message = { type = part.type:le_uint(), request = part.request:le_uint(), name = part.name:stringz(),
        status = part.status:le_uint(), export = part.export:le_uint(), generation = part.generation:le_uint(),
        pages = part.pages:le_uint(), use = part.use:le_uint() }
    state.message(frame, message)
    local words = { format.messages[message.type] or "message " .. message.type }
    local asks, answers = message.type == format.IMPORT, message.type == format.ANSWER
    if not format.messages[message.type] then
        item:add_proto_expert_info(E.message)
    end
    tree:add_le(F.request, part.request)
    tree:add_le(F.key, part.key)
    local name = tree:add(F.name, part.name, message.name)
    local status = tree:add_le(F.status, part.status)
    tree:add_le(F.given, part.export)
    tree:add_le(F.given_generation, part.generation)
    tree:add_le(F.pages, part.pages)
    tree:add_le(F.use, part.use)
    if asks then
        words[#words + 1] = '"' .. message.name .. '"'
    else
        name:set_hidden(message.name == "")
    end
    if answers and message.status ~= 0 then
        words[#words + 1] = format.statuses[message.status] or message.status
        status:add_proto_expert_info(E.refused, "Refused: " .. words[#words])
    elseif not asks then
        words[#words + 1] = string.format("%u.%u", message.export, message.generation)
    end
    if answers and message.status == 0 then
        words[#words + 1] = string.format("%u pages for %s", message.pages, format.uses[message.use] or message.use)
    end
    if asks or answers then
        words[#words + 1] = "#" .. message.request
    end
    pinfo.cols.info:append(" | " .. table.concat(words, " "))
    local known = state.of(frame.number)
    local request = known and known.request
    if known and known.unasked then
        item:add_proto_expert_info(E.unasked)
    end
    if request and frame.number == request.number then
        if request.answer then
            tree:add(F.answer_in, request.answer):set_generated()
        end
    elseif request then
        tree:add(F.request_in, request.number):set_generated()
        tree:add(F.answer_time, seconds(frame.time - request.time)):set_generated()
    end
end

-- ---- vRPC ----

-- Sides are what ports are elsewhere: one conversation for each pair, at each interface.
local function dissect_rpc(record, pinfo, root, stream)
    local whole = ByteArray.new(record.bytes, true):tvb("vRPC message")
    local xid = record.length >= 4 and whole(0, 4)
    if vmmc.prefs.rpc then
        local client = stream.pair and 2 * stream.pair.place + 1 or 65535
        local server = client + 1
        pinfo.src_port, pinfo.dst_port = client, server
        if stream.replies then
            pinfo.src_port, pinfo.dst_port = server, client
        end
        pinfo.cols.info:append(" | ")
        pinfo.cols.info:fence()
        rpc_dissector:call(whole, pinfo, root)
    end
    return xid
end

local function add_records(pinfo, root, tree, known)
    for _, record in ipairs(known.records) do
        if record.skip then
            tree:add(F.skipped, record.skip):set_generated()
        else
            tree:add(F.record, record.sequence):set_generated()
            tree:add(F.record_length, record.length):set_generated()
            for _, number in ipairs(record.parts) do
                tree:add(F.part, number):set_generated()
            end
            local xid = dissect_rpc(record, pinfo, root, known.stream)
            if xid then
                tree:add(F.xid, xid):set_generated()
            end
        end
    end
end

local function add_vrpc(range, pinfo, root, tree, known, number)
    if known.record and known.record.complete ~= number then
        tree:add(F.complete_in, known.record.complete):set_generated()
    end
    if known.head then
        tree:add_le(F.head, range(0, 4))
        pinfo.cols.info:append(" | head " .. known.head)
    end
    if known.tail then
        local item = tree:add_le(F.tail, range(0, 4))
        pinfo.cols.info:append(" | tail " .. known.tail)
        if known.broken then
            item:add_proto_expert_info(E.ring)
        end
        add_records(pinfo, root, tree, known)
    end
end

-- ---- ShrimpRPC ----

local function add_shrimp(range, pinfo, tree, flag, number)
    if number ~= flag.number then
        tree:add(F.flag_in, flag.number):set_generated()
        return
    end
    local word = range(range:len() - WORD, WORD)
    local sequence = word(WORD - SHRIMP_SEQUENCE, SHRIMP_SEQUENCE)
    local first = word(0, WORD - SHRIMP_SEQUENCE)
    tree:add(F.shrimp_seq, sequence, sequence:le_uint64())
    for _, part in ipairs(flag.parts) do
        tree:add(F.stored_in, part):set_generated()
    end
    local count = tostring(sequence:le_uint64())
    if flag.replies then
        local item = tree:add_le(F.shrimp_status, first)
        local text = format.shrimp_statuses[flag.word] or "status " .. flag.word
        if flag.word ~= 0 then
            item:add_proto_expert_info(E.status, "The call failed: " .. text)
        end
        tree:add(F.results, flag.bytes):set_generated()
        pinfo.cols.info:append(string.format(" | ShrimpRPC reply %s %s, %d bytes", count, text, flag.bytes))
    else
        tree:add_le(F.procedure, first)
        tree:add(F.arguments, flag.bytes):set_generated()
        pinfo.cols.info:append(string.format(" | ShrimpRPC call %s procedure %u, %d bytes", count, flag.word, flag.bytes))
    end
    if flag.call then
        tree:add(F.call_in, flag.call.number):set_generated()
        tree:add(F.time, seconds(flag.time - flag.call.time)):set_generated()
    elseif flag.reply then
        tree:add(F.reply_in, flag.reply.number):set_generated()
    end
end

-- ---- data ----

local function add_hello(pinfo, tree, hello)
    local bytes = ByteArray.new(hello.bytes, true):tvb("hello")
    tree:add_le(F.hello_hash, bytes(0, 8))
    tree:add(F.hello_name, bytes(16, 32), hello.name)
    tree:add_le(F.hello_node, bytes(48, 2))
    tree:add_le(F.hello_task, bytes(50, 2))
    pinfo.cols.info:append(' | hello of "' .. hello.name .. '"')
end

local function add_data(range, pinfo, root, tree, number, known)
    local stream = known and known.stream
    if known and known.unknown then
        tree:add_proto_expert_info(E.unknown)
    end
    if not stream then
        return
    end
    tree:add(F.import_name, stream.name):set_generated()
    tree:add(F.import_use, stream.use):set_generated()
    tree:add(F.import_in, stream.granted):set_generated()
    if stream.pair then
        tree:add(F.pair, stream.pair.index):set_generated()
    end
    if known.hello then
        add_hello(pinfo, tree, known.hello)
    end
    if stream.use == format.VRPC then
        add_vrpc(range, pinfo, root, tree, known, number)
    elseif known.flag then
        add_shrimp(range, pinfo, tree, known.flag, number)
    end
end

local function length_fault(frame, reported)
    if frame.length ~= reported - HEADER then
        return "The packet has " .. reported - HEADER .. " bytes of data"
    elseif frame.kind == NACK and frame.length ~= 0 then
        return "A refusal has no data"
    elseif frame.kind == CONTROL and frame.length ~= format.MESSAGE_BYTES then
        return "A message has " .. format.MESSAGE_BYTES .. " bytes"
    end
    return nil
end

local function address_of(node)
    return Address.ether(string.format("02:53:44:00:00:%02x", node % 256))
end

function vmmc.dissector(tvb, pinfo, root)
    local captured = tvb:len()
    pinfo.cols.protocol = "VMMC"
    if captured < HEADER then
        root:add(vmmc, tvb()):add_proto_expert_info(E.length, "Shorter than the header of " .. HEADER .. " bytes")
        pinfo.cols.info = "Malformed: shorter than the header"
        return
    end
    local part = parts(tvb, format.at)
    local frame = {
        number = pinfo.number, time = pinfo.rel_ts, kind = part.kind:uint(), flags = part.flags:uint(),
        reason = part.reason:uint(), sender = part.sender:le_uint(), receiver = part.receiver:le_uint(),
        seq = part.sequence:le_uint(), export = part.export:le_uint(), generation = part.generation:le_uint(),
        offset = part.offset:le_uint(), length = part.length:le_uint(), count = part.count:le_uint(),
    }
    local tree = root:add(vmmc, tvb(0, captured))
    local version = tree:add(F.version, part.version)
    if part.version:uint() ~= format.VERSION then
        version:add_proto_expert_info(E.version)
        pinfo.cols.info = "Unknown version " .. part.version:uint()
        return
    end
    pinfo.src, pinfo.dst = address_of(frame.sender), address_of(frame.receiver)
    local items = add_header(part, tree, frame)
    pinfo.cols.info = info(frame)
    local fault = length_fault(frame, tvb:reported_len())
    if fault then
        items.length:add_proto_expert_info(E.length, fault)
        return
    end
    if frame.offset % PAGE + frame.length > PAGE then
        items.offset:add_proto_expert_info(E.page)
    end
    local range = captured > HEADER and tvb(HEADER, captured - HEADER) or nil
    state.analyse(frame, range and range:raw() or "")
    local known = state.of(frame.number)
    if known and known.expected then
        items.seq:add_proto_expert_info(E.sequence, "Not the next in sequence: " .. known.expected .. " is")
    end
    if known and known.refused_in then
        tree:add(F.refused_in, known.refused_in):set_generated()
    end
    if frame.kind == NACK then
        tree:add_proto_expert_info(E.nack)
        if known and known.refuses then
            tree:add(F.refuses, known.refuses):set_generated()
        end
    end
    if not range then
        return
    end
    local item = tree:add(F.data, range)
    if frame.kind == CONTROL and captured == HEADER + format.MESSAGE_BYTES then
        add_message(range:tvb(), pinfo, item, frame)
    else
        add_data(range, pinfo, root, tree, frame.number, known)
    end
end

DissectorTable.get("wtap_encap"):add(wtap_encaps.USER1, vmmc)
-- The state lives as long as the capture: see mbcf.lua.
collectgarbage("setpause", 1000)
