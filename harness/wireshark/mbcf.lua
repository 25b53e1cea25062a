-- SPDX-License-Identifier: Apache-2.0
--
-- Wireshark dissector of Sundial's MBCF (EtherType 0x88B6; guest-apps/sss-core/mbcf/wire.def), and of the Sun RPC inside
-- (guest-apps/sss-core/include/rpc/mbcf.h). Installation and display filters: README.md.
--
-- A capture of Sundial holds a frame once for each port that it passed, so the state of a channel (the ordered pair of
-- nodes, whose frames have one sequence) is kept for each interface by itself. Interfaces named ":fate" tell what became
-- of frames and have no state.

-- The installed loader and `sundial open` may both load it.
if sundial_mbcf_is_loaded then
    return
end
sundial_mbcf_is_loaded = true

local directory = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local wire = dofile(directory .. "mbcf_wire.lua")
local parts = dofile(directory .. "mbcf_fields.lua")(wire)
local state = dofile(directory .. "mbcf_state.lua")(wire)

local HEADER = wire.HEADER
local ARGUMENT = wire.SIGNAL_ARGUMENT
local ACK, SYN, SYNACK, RST, PROBE = wire.op.ACK, wire.op.SYN, wire.op.SYNACK, wire.op.RST, wire.op.PROBE
local OPENED = wire.op.OPENED
local TASKQUE, WRITE, READ, FIFO, SIGNAL = wire.op.TASKQUE, wire.op.WRITE, wire.op.READ, wire.op.FIFO, wire.op.SIGNAL
local SWAP, CAS, FETCH_ADD, CLOSE, RESULT = wire.op.SWAP, wire.op.CAS, wire.op.FETCH_ADD, wire.op.CLOSE, wire.op.RESULT
local AT, BEHIND, FLAG = wire.at, wire.payload_at, wire.flag
local OPS, STATUS, STATUS_TEXT = parts.ops, wire.status, wire.status_text
local RPC_KIND, BINDER_KIND = parts.rpc_kind, parts.binder_kind

local mbcf = Proto("mbcf", "Memory-Based Communication Facility")

local F, E = parts.fields, parts.experts
for _, field in pairs(F) do
    table.insert(mbcf.fields, field)
end
for _, item in pairs(E) do
    table.insert(mbcf.experts, item)
end
mbcf.init = state.init

mbcf.prefs.rpc = Pref.bool("Dissect Sun RPC", true, "Hand Sun RPC messages to Wireshark's own dissector")

local function field(tvb, place)
    return tvb(place[1], place[2])
end

-- `at`: where the payload begins.
local function payload(tvb, at, place)
    return tvb(at + place[1], place[2])
end

-- Operations on the memory of a task.
local function is_keyed(op)
    return op >= WRITE and op <= FETCH_ADD
end

local function has(bits, flag)
    return math.floor(bits / flag) % 2 == 1
end

-- Fixed payload lengths, and least ones where data follow.
local WORD = wire.WORD_PAYLOAD
local EXACT = { [READ] = wire.READ_PAYLOAD, [SWAP] = WORD, [FETCH_ADD] = WORD, [CAS] = wire.CAS_PAYLOAD, [ACK] = 0,
    [PROBE] = 0, [RST] = 0, [SYN] = wire.NONCES, [SYNACK] = wire.NONCES, [OPENED] = wire.NONCES }
local LEAST = { [TASKQUE] = wire.TASKQUE_HEAD }

-- ---- Sun RPC ----

local CALL, REPLY = 0, 1
local LAST_FLAVOUR, MOST_CREDENTIAL = 6, 400
local rpc_dissector = Dissector.get("rpc")

-- The type of the RPC message (RFC 5531 section 9) at `at`, of which `left` bytes are there; nil: none begins there.
local function rpc_type(tvb, at, left)
    if left < 24 or tvb:len() < at + 32 and tvb:len() < at + left then
        return nil
    end
    local kind, third = tvb(at + 4, 4):uint(), tvb(at + 8, 4):uint()
    if kind == CALL then
        local call = left >= 40 and third == 2 and tvb(at + 24, 4):uint() <= LAST_FLAVOUR
            and tvb(at + 28, 4):uint() <= MOST_CREDENTIAL
        return call and CALL or nil
    end
    return kind == REPLY and third <= 1 and REPLY or nil
end

-- ---- the tree ----

local function seconds(time)
    local whole = math.floor(time)
    return NSTime.new(whole, math.floor((time - whole) * 1e9 + 0.5))
end

local FLAGS = {}
for name, bit in pairs(wire.flag) do
    FLAGS[#FLAGS + 1] = { bit, name }
end
table.sort(FLAGS, function(one, other) return one[1] < other[1] end)
local flag_names = {} -- by value, as they come

local function names_of(flags)
    local found = flag_names[flags]
    if not found then
        local names = {}
        for _, pair in ipairs(FLAGS) do
            if has(flags, pair[1]) then
                names[#names + 1] = pair[2]
            end
        end
        found = table.concat(names, ", ")
        flag_names[flags] = found
    end
    return found
end

local function add_flags(tree, range, frame)
    local item = tree:add(F.flags, range)
    item:add(F.unsure, range)
    item:add(F.ack_now, range)
    item:add(F.more, range)
    item:add(F.retx, range)
    item:add(F.wide, range)
    item:add(F.part, range)
    item:add(F.defines, range)
    item:add(F.reserved, range)
    local names = names_of(frame.flags)
    if names ~= "" then
        item:append_text(" (" .. names .. ")")
    end
    if frame.flags >= 2 * FLAG.DEFINES then
        item:add_proto_expert_info(E.flags)
    end
end

-- What is unusual about a frame's place in the sequence; returns it in words.
local function add_notes(tree, item, found)
    local words = {}
    local function say(field, value, expert_item, text)
        tree:add(field, value):set_generated()
        item:add_proto_expert_info(expert_item, text)
        words[#words + 1] = text
    end
    if found.retransmission then
        say(F.retransmission, true, E.retransmission,
            found.first and "Retransmission" or "Retransmission of a frame not seen here")
    end
    if found.duplicate then
        say(F.duplicate, true, E.duplicate, "Duplicate")
    end
    if found.first then
        tree:add(F.first, found.first):set_generated()
    end
    if found.wrong_retx then
        item:add_proto_expert_info(E.retx, found.first and "Sent again without RETX" or "RETX on a frame not sent before")
    end
    if found.gap then
        say(F.gap, found.gap, E.gap, "Gap")
    end
    if found.ack_unseen then
        say(F.ack_unseen, true, E.ack_unseen, "ACKed unseen frame")
    end
    if found.ack_again then
        say(F.ack_again, found.ack_again, E.ack_again, "Dup ACK #" .. found.ack_again)
    end
    if found.stale or found.stale_ack then
        say(F.stale, true, E.stale, found.stale and "Stale epoch" or "ACK of a stale epoch")
    end
    if found.new_epoch then
        say(F.new_epoch, true, E.new_epoch, "New epoch")
    end
    if found.unasked then
        item:add_proto_expert_info(E.unanswered)
    end
    return table.concat(words, ", ")
end

local function add_matches(tree, frame, request)
    local answer = state.acked_in[frame.number]
    if answer then
        tree:add(F.acked_in, answer):set_generated()
        tree:add(F.ack_time, seconds(state.acked_at[frame.number] - frame.time)):set_generated()
    end
    local acked = state.acks[frame.number]
    if acked then
        tree:add(F.acks, acked):set_generated()
        tree:add(F.ack_rtt, seconds(frame.time - state.ack_times[frame.number])):set_generated()
    end
    if not request then
        return
    end
    if frame.op == RESULT then
        tree:add(F.result_of, request.op):set_generated()
        tree:add(F.request_in, request.number):set_generated()
        tree:add(F.time, seconds(frame.time - request.time)):set_generated()
    elseif request.response then
        tree:add(F.response_in, request.response):set_generated()
    end
end

local function add_rpc(tree, frame, xid, kind)
    tree:add(F.rpc_xid, xid):set_generated()
    tree:add(F.rpc_type, kind):set_generated()
    local call = state.calls[frame.number]
    if not call then
        return
    end
    if kind == REPLY then
        tree:add(F.rpc_call, call.number):set_generated()
        tree:add(F.rpc_time, seconds(frame.time - call.time)):set_generated()
    elseif call.reply then
        tree:add(F.rpc_reply, call.reply):set_generated()
    end
end

-- ---- heads of RPC over MBCF (guest-apps/sss-core/rpc/mbcf_messages.h), in the machines' byte order: little endian ----

local RPC_HEAD, BIND, BOUND, QUERY = 16, 24, 56, 32
local BOUND_MAGIC, QUERY_MAGIC = 0x444e424d, 0x4442424d

local function add_bound(tree, tvb, at)
    tree:add_le(F.rpc_refusal, tvb(at + 4, 4))
    tree:add_le(F.rpc_key, tvb(at + 8, 8))
    tree:add_le(F.rpc_fifo, tvb(at + 16, 8))
    tree:add_le(F.rpc_handler, tvb(at + 24, 8))
    tree:add_le(F.rpc_area, tvb(at + 32, 8))
    tree:add_le(F.rpc_ring, tvb(at + 40, 4))
    tree:add_le(F.rpc_slots, tvb(at + 44, 4))
    tree:add_le(F.rpc_slot, tvb(at + 48, 4))
    tree:add_le(F.rpc_task, tvb(at + 52, 2))
    return "BOUND"
end

local function add_query(tree, tvb, at)
    tree:add_le(F.binder_kind, tvb(at + 4, 4))
    tree:add_le(F.binder_program, tvb(at + 8, 4))
    tree:add_le(F.binder_version, tvb(at + 12, 4))
    tree:add_le(F.binder_type, tvb(at + 16, 4))
    tree:add_le(F.binder_answer, tvb(at + 24, 8))
    return "binder " .. (BINDER_KIND[tvb(at + 4, 4):le_uint()] or "?")
end

local function add_rpc_head(tree, tvb, at, left)
    local kind = tvb(at + 12, 4):le_uint()
    local rest = left - RPC_HEAD
    if kind == 1 and not rpc_type(tvb, at + RPC_HEAD, rest) or kind == 2 and rest ~= 16 or kind == 3 and rest ~= BIND then
        return nil
    end
    tree:add_le(F.rpc_replies, tvb(at, 8))
    tree:add_le(F.rpc_reply_most, tvb(at + 8, 4))
    tree:add_le(F.rpc_kind, tvb(at + 12, 4))
    if kind == 2 then
        tree:add_le(F.rpc_source, tvb(at + 16, 8))
        tree:add_le(F.rpc_source_length, tvb(at + 24, 4))
    elseif kind == 3 then
        tree:add_le(F.rpc_program, tvb(at + 16, 4))
        tree:add_le(F.rpc_version, tvb(at + 20, 4))
        tree:add_le(F.rpc_server_type, tvb(at + 24, 4))
        tree:add_le(F.rpc_request_most, tvb(at + 28, 4))
        tree:add_le(F.rpc_depth, tvb(at + 32, 4))
    end
    return RPC_KIND[kind], kind == 1
end

-- Adds what is in front of an RPC message -> a word for it, and where an RPC message may begin.
local function dissect_heads(tree, tvb, at, left, op)
    local have = tvb:len() - at
    if op == FIFO and left == BOUND and have >= BOUND and tvb(at, 4):le_uint() == BOUND_MAGIC then
        return add_bound(tree, tvb, at), nil
    elseif op == TASKQUE and left >= RPC_HEAD and have >= RPC_HEAD then
        if left == QUERY and have >= QUERY and tvb(at, 4):le_uint() == QUERY_MAGIC then
            return add_query(tree, tvb, at), nil
        end
        local kind = tvb(at + 12, 4):le_uint()
        if RPC_KIND[kind] and have >= math.min(left, RPC_HEAD + 32) then
            local word, call = add_rpc_head(tree, tvb, at, left)
            return word, call and at + RPC_HEAD or nil
        end
        return nil, nil
    end
    return nil, at
end

-- ---- payloads: each adds its fields and returns the bytes in front of the data, nil where there are no data ----

local function reserved(tree, field, range)
    local item = tree:add(field, range)
    if range:uint() ~= 0 then
        item:add_proto_expert_info(E.reserved)
    end
end

local function nonces(tree, tvb, _, at)
    tree:add(F.nonce, payload(tvb, at, BEHIND.nonce))
    tree:add(F.echo, payload(tvb, at, BEHIND.echo))
end

local function operand(tree, tvb, _, at)
    tree:add(F.operand, payload(tvb, at, BEHIND.operand))
end

local HEADS = {
    [WRITE] = function() return 0 end,
    [FIFO] = function(tree, tvb, frame, at)
        if not frame.part then
            return 0
        end
        tree:add(F.part_total, payload(tvb, at, BEHIND.part_total))
        local offset = payload(tvb, at, BEHIND.part_offset)
        tree:add(F.part_offset, offset)
        frame.offset = offset:uint()
        return wire.PART_HEAD
    end,
    [TASKQUE] = function(tree, tvb, _, at)
        tree:add(F.taskque_key, payload(tvb, at, BEHIND.taskque_key))
        tree:add(F.taskque_permission, payload(tvb, at, BEHIND.taskque_permission))
        tree:add(F.taskque_connection, payload(tvb, at, BEHIND.taskque_connection))
        return wire.TASKQUE_HEAD
    end,
    [READ] = function(tree, tvb, _, at)
        tree:add(F.read_length, payload(tvb, at, BEHIND.read_length))
        reserved(tree, F.read_reserved, payload(tvb, at, BEHIND.read_reserved))
    end,
    [SIGNAL] = function(tree, tvb, frame, at)
        for place = 0, frame.status - 1 do
            tree:add(F.signal_argument, tvb(at + ARGUMENT * place, ARGUMENT))
        end
        return ARGUMENT * frame.status
    end,
    [CLOSE] = function(tree, tvb, frame, at)
        if frame.length > 0 then
            tree:add(F.close_connection, payload(tvb, at, BEHIND.close_connection))
            tree:add(F.close_peer, payload(tvb, at, BEHIND.close_peer))
        end
    end,
    [SYN] = nonces,
    [SYNACK] = nonces,
    [OPENED] = nonces,
    [SWAP] = operand,
    [FETCH_ADD] = operand,
    [CAS] = function(tree, tvb, _, at)
        tree:add(F.expected, payload(tvb, at, BEHIND.cas_expected))
        tree:add(F.new, payload(tvb, at, BEHIND.cas_new))
    end,
    [RESULT] = function(tree, tvb, _, at, of)
        if of == SWAP or of == CAS or of == FETCH_ADD then
            tree:add(F.old, payload(tvb, at, BEHIND.result_old))
            return nil
        end
        return 0
    end,
}

-- Bytes that a payload has before its data.
local function least_length(frame)
    if frame.op == SIGNAL then
        return ARGUMENT * frame.status
    end
    return EXACT[frame.op] or LEAST[frame.op] or frame.op == FIFO and frame.part and wire.PART_HEAD or 0
end

-- What a RESULT carries, by the operation that it answers: bytes, or nil where any number is right.
local function result_length(frame, of)
    if frame.status ~= 0 then
        return 0
    elseif not of or of == READ then
        return nil
    end
    return (of == SWAP or of == CAS or of == FETCH_ADD) and 8 or 0
end

-- What is wrong with a frame's length, nil where nothing is.
local function length_fault(frame, of, reported)
    local length, op = frame.length, frame.op
    if length > wire.PAYLOAD then
        return "More than " .. wire.PAYLOAD .. " bytes of payload"
    elseif length > reported - frame.at then
        return "The frame has room for " .. reported - frame.at .. " bytes of payload"
    elseif EXACT[op] and length ~= EXACT[op] then
        return OPS[op] .. " has " .. EXACT[op] .. " bytes of payload"
    elseif length < least_length(frame) then
        return "The payload has at least " .. least_length(frame) .. " bytes"
    elseif op == RESULT then
        local right = result_length(frame, of)
        return right and length ~= right and "This RESULT has " .. right .. " bytes of payload" or nil
    end
    return nil
end

local function check_header(items, frame)
    local op, status = frame.op, frame.status
    if frame.tag ~= 0 and not frame.keyed then
        items.tag:add_proto_expert_info(E.reserved)
    end
    if not OPS[op] then
        items.op:add_proto_expert_info(E.op)
    elseif op >= TASKQUE and frame.seq == 0 then
        items.seq:add_proto_expert_info(E.sequence, "In the sequence, but without a number")
    elseif frame.seq ~= 0 and (op == ACK or op == PROBE or op == RST) then
        items.seq:add_proto_expert_info(E.sequence, "Outside the sequence, but with a number")
    end
    if op == SIGNAL then
        if status > wire.SIGNAL_ARGUMENTS then
            items.status:add_proto_expert_info(E.arguments)
        end
    elseif status ~= 0 then
        local text = STATUS_TEXT[status] or "status " .. status
        items.status:append_text(": " .. text)
        if op == RESULT then
            items.status:add_proto_expert_info(E.failed, "The operation failed: " .. text)
        else
            items.status:add_proto_expert_info(E.status)
        end
    end
    if frame.epoch == 0 then
        items.epoch:add_proto_expert_info(E.epoch)
    end
end

local function info(frame, words)
    local text = string.format("%u.%u \226\134\146 %u.%u %s", frame.source, frame.source_task, frame.target, frame.target_task,
        OPS[frame.op] or string.format("operation 0x%02x", frame.op))
    if words ~= "" then
        text = "[" .. words .. "] " .. text
    end
    if frame.op == RESULT then
        text = text .. " " .. (STATUS[frame.status] or frame.status)
    end
    local names = names_of(frame.flags)
    if names ~= "" then
        text = text .. " [" .. names .. "]"
    end
    if frame.seq > 0 then
        text = text .. " Seq=" .. frame.seq
    end
    if frame.target_epoch > 0 and frame.op ~= RST and frame.op ~= OPENED then
        text = text .. " Ack=" .. frame.ack
    end
    if frame.op_id > 0 then
        text = text .. " Id=" .. frame.op_id
    end
    return text .. " Len=" .. frame.length
end

local function dissect_rpc(tvb, pinfo, root, frame)
    if not mbcf.prefs.rpc then
        return
    end
    -- Tasks are what ports are elsewhere: one RPC conversation for each pair of them, at each interface, so that a frame
    -- seen at two ports is not a retransmission to the RPC dissector either.
    local base = (state.places[frame.number] or 0) % state.NO_ID * 65536
    pinfo.src_port, pinfo.dst_port = base + frame.source_task, base + frame.target_task
    pinfo.cols.info:append(" | ")
    pinfo.cols.info:fence()
    rpc_dissector:call(tvb, pinfo, root)
end

local function add_segment(tree, pinfo, root, frame, segment)
    if not segment.complete then
        return
    elseif frame.number ~= segment.complete then
        tree:add(F.reassembled, segment.complete):set_generated()
        return
    end
    for _, number in ipairs(segment.parts) do
        tree:add(F.fragment, number):set_generated()
    end
    if segment.whole then
        local whole = segment.bytes:tvb("MBCF segment")
        tree:add(F.segment_length, whole(), whole:len()):set_generated()
        if segment.rpc_at then
            dissect_rpc(whole(segment.rpc_at):tvb(), pinfo, root, frame)
        end
    end
end

-- The data of an operation at `at`, of which `left` bytes are there.
local function dissect_data(tvb, pinfo, root, tree, item, frame, at, left)
    local begins = not frame.channel or not frame.channel.open[state.open_name(frame)]
    if frame.visited then
        local segment = state.segments[frame.number]
        begins = not segment or segment.parts[1] == frame.number
    end
    local word, rpc_at, kind
    if begins then
        word, rpc_at = dissect_heads(item, tvb, at, left, frame.op)
        kind = rpc_at and rpc_type(tvb, rpc_at, at + left - rpc_at)
    end
    if word then
        pinfo.cols.info:append(" | " .. word)
    end
    if kind then
        local xid = tvb(rpc_at, 4):uint()
        if frame.channel then
            state.analyse_rpc(frame, xid, kind)
        end
        add_rpc(tree, frame, xid, kind)
    end
    if frame.accepted then
        state.collect(frame, tvb(at, math.min(left, tvb:len() - at)), left <= tvb:len() - at, kind and rpc_at - at)
    end
    local segment = state.segments[frame.number]
    if segment then
        add_segment(tree, pinfo, root, frame, segment)
    elseif kind and not frame.more then
        dissect_rpc(tvb:range(rpc_at, math.min(at + left, tvb:len()) - rpc_at):tvb(), pinfo, root, frame)
    end
end

local function dissect_payload(tvb, pinfo, root, tree, frame, of)
    local at = frame.at
    local captured = math.min(frame.length, tvb:len() - at)
    if captured < 1 then
        return
    end
    local item = tree:add(F.payload, tvb(at, captured))
    local head = HEADS[frame.op]
    if not head or least_length(frame) > captured then
        return
    end
    local skip = head(item, tvb, frame, at, of)
    if not skip or captured <= skip then
        return
    end
    item:add(F.data, tvb(at + skip, captured - skip))
    dissect_data(tvb, pinfo, root, tree, item, frame, at + skip, frame.length - skip)
    local found = state.notes[frame.number]
    if found and found.part_wrong then
        item:add_proto_expert_info(E.part, "The segment goes on at " .. found.part_wrong)
    end
end

-- Tasks, key and address: in the frame, or what its tag or the request stands for.
local function add_meant(tree, items, frame, request)
    local meant = frame.definition or state.resolved[frame.number]
    if meant then
        frame.source_task, frame.target_task = meant.source, meant.target
        local item = tree:add(F.address, UInt64(frame.last, meant.high))
        if not frame.definition then
            tree:add(F.src_task, meant.source):set_generated()
            tree:add(F.dst_task, meant.target):set_generated()
            tree:add(F.key, meant.key):set_generated()
        end
        item:set_generated()
    elseif frame.keyed then
        items.tag:add_proto_expert_info(E.tag)
    elseif frame.op == RESULT and request then
        frame.source_task, frame.target_task = request.target_task, request.source_task
        tree:add(F.src_task, frame.source_task):set_generated()
        tree:add(F.dst_task, frame.target_task):set_generated()
    end
    tree:add(F.task, frame.source_task):set_hidden()
    tree:add(F.task, frame.target_task):set_hidden()
    tree:add(F.connection, state.index(state.indices.connection, frame.source * 65536 + frame.source_task,
        frame.target * 65536 + frame.target_task)):set_generated()
end

-- Fields for display filters alone, and the state of channels.
local function add_analysis(tree, items, frame, pinfo)
    tree:add(F.src_node, frame.source):set_generated()
    tree:add(F.dst_node, frame.target):set_generated()
    tree:add(F.node, frame.source):set_hidden()
    tree:add(F.node, frame.target):set_hidden()
    tree:add(F.channel, state.index(state.indices.channel, frame.source, frame.target)):set_generated()
    if not frame.visited then
        state.analyse(frame, pinfo)
    end
    local request = state.requests[frame.number]
    add_meant(tree, items, frame, request)
    check_header(items, frame)
    add_matches(tree, frame, request)
    local found = state.notes[frame.number]
    return found and add_notes(tree, items.seq, found) or ""
end

local function short(tvb, pinfo, root)
    root:add(mbcf, tvb()):add_proto_expert_info(E.length, "Shorter than the header of " .. HEADER .. " bytes")
    pinfo.cols.protocol, pinfo.cols.info = "MBCF", "Malformed: shorter than the header"
end

local function add_padding(tree, tvb, at)
    local rest = tvb(at)
    local item = tree:add(F.padding, rest)
    if rest:bytes():tohex():find("[^0]") then
        item:add_proto_expert_info(E.padding)
    end
end

-- What a frame with DEFINES says of its tag, and its tree.
local function read_definition(tvb, tree)
    local source, target, key = field(tvb, AT.tag_source_task), field(tvb, AT.tag_target_task), field(tvb, AT.tag_key)
    local high = field(tvb, AT.tag_address_high)
    tree:add(F.src_task, source)
    tree:add(F.dst_task, target)
    tree:add(F.address_high, high)
    tree:add(F.key, key)
    return { source = source:uint(), target = target:uint(), high = high:uint(), key = key:uint64() }
end

-- The word behind op_id, which is another thing for each kind of frame.
local function add_last(tvb, tree, frame)
    if frame.keyed then
        tree:add(F.offset, field(tvb, AT.offset))
    elseif frame.op == RESULT then
        tree:add(F.request_seq, field(tvb, AT.request))
    else
        tree:add(F.src_task, field(tvb, AT.source_task))
        tree:add(F.dst_task, field(tvb, AT.target_task))
        frame.source_task, frame.target_task = field(tvb, AT.source_task):uint(), field(tvb, AT.target_task):uint()
    end
end

-- The number of a node is the end of its Ethernet address, as Sundial derives these.
local function node_of(address)
    return tonumber(tostring(address):sub(-2), 16) or 0
end

function mbcf.dissector(tvb, pinfo, root)
    local captured = tvb:len()
    if captured < HEADER then
        return short(tvb, pinfo, root)
    end
    -- Each range is made once: in Lua, making objects is what dissection costs.
    local op, flags, status = field(tvb, AT.op), field(tvb, AT.flags), field(tvb, AT.version_status)
    local tag, epoch, target_epoch = field(tvb, AT.tag), field(tvb, AT.epoch), field(tvb, AT.target_epoch)
    local seq, ack, op_id, length = field(tvb, AT.seq), field(tvb, AT.ack), field(tvb, AT.op_id), field(tvb, AT.length)
    local bits, version = flags:uint(), math.floor(status:uint() / 2 ^ wire.VERSION_SHIFT)
    local frame = {
        number = pinfo.number, time = pinfo.rel_ts, visited = state.is_known(pinfo.number),
        op = op:uint(), flags = bits, status = status:uint() % (wire.STATUS_MASK + 1), tag = tag:uint(),
        source = node_of(pinfo.dl_src), source_task = 0, target = node_of(pinfo.dl_dst), target_task = 0,
        epoch = epoch:uint(), target_epoch = target_epoch:uint(), seq = seq:uint(), ack = ack:uint(),
        op_id = op_id:uint(), length = length:uint(), last = field(tvb, AT.offset):uint(),
        unsure = has(bits, FLAG.UNSURE), more = has(bits, FLAG.MORE), retx = has(bits, FLAG.RETX),
        part = has(bits, FLAG.PART), keyed = is_keyed(op:uint()),
    }
    local defines = has(bits, FLAG.DEFINES) and captured >= HEADER + wire.DEFINITION
    frame.at = defines and HEADER + wire.DEFINITION or HEADER
    local finish = math.min(frame.at + frame.length, captured)
    local tree = root:add(mbcf, tvb(0, finish))
    pinfo.cols.protocol = "MBCF"
    local version_item = tree:add(F.version, status)
    if version ~= wire.VERSION then
        version_item:add_proto_expert_info(E.version)
        pinfo.cols.info = "Unknown version " .. string.format("%d", version)
        return
    end
    local items = { op = tree:add(F.op, op) }
    add_flags(tree, flags, frame)
    items.status = tree:add(frame.op == SIGNAL and F.signal_arguments or F.status, status)
    items.tag = tree:add(F.tag, tag)
    items.epoch = tree:add(F.epoch, epoch)
    tree:add(F.target_epoch, target_epoch)
    items.seq = tree:add(F.seq, seq)
    tree:add(F.ack, ack)
    items.length = tree:add(F.length, length)
    tree:add(F.op_id, op_id)
    add_last(tvb, tree, frame)
    frame.definition = defines and read_definition(tvb, tree) or nil
    pinfo.cols.info = info(frame, add_analysis(tree, items, frame, pinfo))
    pinfo.cols.info:fence()
    local request = state.requests[frame.number]
    local of = frame.op == RESULT and request and request.op
    local fault = length_fault(frame, of, tvb:reported_len())
    if fault then
        items.length:add_proto_expert_info(E.length, fault)
        return
    end
    dissect_payload(tvb, pinfo, root, tree, frame, of)
    if captured > finish then
        add_padding(tree, tvb, finish)
    end
end

DissectorTable.get("ethertype"):add(wire.ETHERTYPE, mbcf)
-- The state lives as long as the capture: looking for what can be freed of it again and again takes a third of the time.
collectgarbage("setpause", 1000)
