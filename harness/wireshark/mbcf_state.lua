-- SPDX-License-Identifier: Apache-2.0
--
-- What the sequence of a channel tells, for mbcf.lua, which loads this. `wire`: mbcf_wire.lua.

return function(wire)

local op = wire.op
local ACK, SYN, SYNACK, READ, RESULT = op.ACK, op.SYN, op.SYNACK, op.READ, op.RESULT
local FIRST_SEQUENCED = op.TASKQUE
local CONNECTION_NAME = wire.OP_ID_CONNECTION -- set in an op_id that names a connection instead of an operation
local SEQ_MOST = 4294967295 -- 1 follows
local SEQ_WRAP, SEQ_HALF = 4294967296, 2147483648
local CALL = 0 -- of an RPC message

local state = {}
local interface_id = Field.new("frame.interface_id")
local interface_name = Field.new("frame.interface_name")

-- ---- state of a capture; filled in the first pass, in the order of frames ----

local channels  -- by interface, source and destination node
local indices   -- of channels and connections, by pairs that both directions share
local fates     -- by interface id: whether it is one of fates
local places    -- by frame number: the interface id, or what stands for it
local latest    -- the highest frame number that was analysed: tshark -2 says "visited" of frames that were not
-- By frame number, also for mbcf.lua. Plain numbers where a frame usually has one: a table for each frame costs more
-- than the dissection.
local notes     -- what is unusual
local acks      -- the frame that is acknowledged
local ack_times -- when that was seen
local acked_in  -- the frame that acknowledges it
local acked_at  -- when that was seen
local requests  -- the request that a frame is a part of, or the result of
local calls     -- the RPC call that a frame carries, or answers
local segments  -- the segment of several frames that a frame is a part of
local resolved  -- what the tag of a frame stands for

local function new_index()
    return { next = 0 }
end

function state.init()
    channels, fates, places, latest = {}, {}, {}, 0
    indices = { channel = new_index(), connection = new_index() }
    notes, acks, ack_times, acked_in, acked_at = {}, {}, {}, {}, {}
    requests, calls, segments, resolved = {}, {}, {}, {}
    state.indices, state.places, state.notes, state.acks, state.ack_times = indices, places, notes, acks, ack_times
    state.acked_in, state.acked_at, state.requests, state.calls, state.segments = acked_in, acked_at, requests, calls, segments
    state.resolved = resolved
end

-- A number for an unordered pair, counted from 0 as they come.
function state.index(of, one, other)
    if one > other then
        one, other = other, one
    end
    local row = of[one]
    if not row then
        row = {}
        of[one] = row
    end
    local found = row[other]
    if not found then
        found = of.next
        row[other], of.next = found, found + 1
    end
    return found
end

local function new_channel(epoch, earlier)
    -- seen, times: first frame of each seq; top: the last of them; acked: the highest that is acknowledged; accepted: the
    -- highest that a receiver here has executed; requests: by op_id; calls: of RPC, by xid; open: segments of which parts
    -- are to come; tags: what they mean now; meant: what the tag of each seq meant
    return { epoch = epoch, earlier = earlier, seen = {}, times = {}, acks = 0, requests = {}, calls = {}, open = {},
        tags = {}, meant = {} }
end

local function channel_key(interface, source, target)
    return (interface * 65536 + source) * 65536 + target
end

local function note(frame)
    local found = notes[frame.number]
    if not found then
        found = {}
        notes[frame.number] = found
    end
    return found
end

-- The channel of a frame, nil for one of an earlier incarnation.
local function channel_of(frame)
    local key = channel_key(frame.interface, frame.source, frame.target)
    local channel = channels[key]
    if not channel then
        channel = new_channel(frame.epoch, {})
        channels[key] = channel
    elseif channel.epoch ~= frame.epoch then
        if channel.earlier[frame.epoch] then
            note(frame).stale = true
            return nil
        end
        channel.earlier[channel.epoch] = true
        channel = new_channel(frame.epoch, channel.earlier)
        channels[key] = channel
        note(frame).new_epoch = true
    elseif frame.op >= FIRST_SEQUENCED and frame.target_epoch ~= channel.target_epoch then
        -- Another incarnation of the receiver: its sequence is another one.
        if channel.target_epoch then
            channel = new_channel(frame.epoch, channel.earlier)
            channels[key] = channel
        end
        channel.target_epoch = frame.target_epoch
    end
    return channel
end

-- Whether sequence number `one` is behind `other`: 32 bits that go round, 0 left out.
local function after(one, other)
    local distance = (one - other) % SEQ_WRAP
    return distance > 0 and distance < SEQ_HALF
end

local function following(seq)
    return seq == SEQ_MOST and 1 or seq + 1
end

-- Where a frame stands in its channel's sequence. A receiver executes the next one and drops every other.
local function analyse_sequence(channel, frame)
    local seq, first = frame.seq, channel.seen[frame.seq]
    if first and channel.opened and not frame.retx then
        first, channel.opened = nil, nil -- after a SYN, numbers of what was given up are used again
        channel.accepted, channel.acked = seq - 1, nil
    end
    if first or frame.retx then
        local found = note(frame)
        found.first = first
        found.duplicate = not frame.retx
        found.retransmission = frame.retx
        found.wrong_retx = frame.outbound and (first ~= nil) ~= frame.retx
    end
    if not first then
        channel.seen[seq], channel.times[seq] = frame.number, frame.time
    end
    local accepted = channel.accepted
    if not accepted or seq == following(accepted) then
        channel.accepted = seq
        frame.accepted = true
    elseif after(seq, accepted) then
        frame.missing = (seq - accepted) % SEQ_WRAP - (seq < accepted and 2 or 1)
        note(frame).gap = frame.missing
    end
    if not channel.top or after(seq, channel.top) then
        channel.top = seq
    end
end

-- Links the frames that an acknowledgement covers, from the latest backwards, to the frame that brings it.
local function link_acknowledged(reverse, ack, frame)
    local seen, seq = reverse.seen, ack
    local number = seen[seq]
    while number and seq ~= reverse.acked and not acked_in[number] do
        acked_in[number], acked_at[number] = frame.number, frame.time
        seq = seq == 1 and SEQ_MOST or seq - 1
        number = seen[seq]
    end
    reverse.acked = ack
end

-- What a tag stands for: kept for each sequence number, for what is sent again may come behind another definition.
local function analyse_tag(channel, frame)
    local meant = channel.meant[frame.seq]
    if not meant then
        meant = frame.definition or channel.tags[frame.tag]
        channel.meant[frame.seq] = meant
        channel.tags[frame.tag] = meant
    end
    resolved[frame.number] = meant
    if meant then
        frame.source_task, frame.target_task = meant.source, meant.target
    end
end

local function analyse_ack(channel, reverse, frame)
    local ack, target_epoch = frame.ack, frame.target_epoch
    if target_epoch == 0 or frame.op ~= SYNACK and frame.op ~= ACK and frame.op ~= op.PROBE and frame.op < FIRST_SEQUENCED then
        return
    end
    if reverse then
        local top = reverse.top
        if reverse.epoch ~= target_epoch then
            note(frame).stale_ack = true
        elseif top and after(ack, top) then
            note(frame).ack_unseen = true
        elseif top and reverse.seen[ack] then
            acks[frame.number], ack_times[frame.number] = reverse.seen[ack], reverse.times[ack]
            -- What completes operations: not UNSURE, not behind a gap, not before the channel is open.
            local sure = not frame.unsure and not frame.missing and frame.op ~= SYNACK
            if sure and (not reverse.acked or after(ack, reverse.acked)) then
                link_acknowledged(reverse, ack, frame)
            end
        end
    end
    if frame.op == ACK and channel.last_ack == ack and channel.last_target_epoch == target_epoch then
        channel.acks = channel.acks + 1
        note(frame).ack_again = channel.acks
    elseif channel.last_ack ~= ack then
        channel.acks = 0
    end
    channel.last_ack, channel.last_target_epoch = ack, target_epoch
end

local function analyse_results(channel, reverse, frame)
    local op_id = frame.op_id
    if op_id == 0 then
        return
    elseif op_id >= CONNECTION_NAME then
        return -- no result is to come, but of a failure
    end
    local request
    if frame.op == RESULT then
        request = reverse and reverse.requests[op_id]
        if request then
            request.response = request.response or frame.number
            if frame.accepted then -- the n-th result is that of the n-th READ of a segment
                request.taken = (request.taken or 0) + 1
                frame.more = request.more[request.taken] or false
            end
        else
            note(frame).unasked = true
        end
    else
        request = channel.requests[op_id]
        -- Parts of one segment share an op_id; behind the last one it may come round again.
        if not request or frame.accepted and (request.whole or request.op ~= frame.op) then
            request = { number = frame.number, time = frame.time, op = frame.op, more = {}, source_task = frame.source_task,
                target_task = frame.target_task }
            channel.requests[op_id] = request
        end
        if frame.accepted then
            request.whole = not frame.more
            request.more[#request.more + 1] = frame.op == READ and frame.more
        end
    end
    requests[frame.number] = request
end

-- The interface of a frame. Where Wireshark builds no tree in the first pass its id cannot be had; the direction tells as
-- much of a frame between two stations.
local SENT, RECEIVED, NO_ID = 0, 1, 1048576

local function place_of(frame, pinfo)
    local id = interface_id()
    if id then
        return id.value
    elseif pinfo.p2p_dir == SENT then
        return NO_ID + frame.source
    elseif pinfo.p2p_dir == RECEIVED then
        return NO_ID + frame.target
    end
    return NO_ID
end

function state.analyse(frame, pinfo)
    latest = frame.number
    frame.interface = place_of(frame, pinfo)
    frame.outbound = pinfo.p2p_dir == SENT
    places[frame.number] = frame.interface
    local fate = fates[frame.interface]
    if fate == nil then
        local name = interface_name()
        fate = name ~= nil and tostring(name.value):sub(-5) == ":fate"
        fates[frame.interface] = fate
    end
    if fate or frame.epoch == 0 then
        return
    end
    local channel = channel_of(frame)
    if not channel then
        return
    end
    local reverse = channels[channel_key(frame.interface, frame.target, frame.source)]
    frame.channel, frame.reverse = channel, reverse
    if frame.op == SYN then
        channel.opened = true
    elseif frame.op >= FIRST_SEQUENCED and frame.seq > 0 then
        analyse_sequence(channel, frame)
        if frame.keyed then
            analyse_tag(channel, frame)
        end
    end
    analyse_ack(channel, reverse, frame)
    analyse_results(channel, reverse, frame)
end

-- ---- segments of several frames ----

function state.open_name(frame)
    local name = frame.op * 4294967296 + frame.source_task * 65536 + frame.target_task
    return frame.op == RESULT and "result " .. frame.op_id or name
end

-- Collects the parts of a segment as a receiver accepts them. `rpc_at`: where an RPC message begins in the first one.
function state.collect(frame, data, captured_whole, rpc_at)
    local open, name = frame.channel.open, state.open_name(frame)
    local segment = open[name]
    if not segment then
        if not frame.more then
            return
        end
        segment = { parts = {}, bytes = ByteArray.new(), whole = true, rpc_at = rpc_at }
        open[name] = segment
    end
    segments[frame.number] = segment
    if frame.offset and segment.whole and frame.offset ~= segment.bytes:len() then
        note(frame).part_wrong = segment.bytes:len()
    end
    segment.parts[#segment.parts + 1] = frame.number
    segment.whole = segment.whole and captured_whole
    if segment.whole then
        segment.bytes:append(data:bytes())
    end
    if not frame.more then
        segment.complete = frame.number
        open[name] = nil
    end
end

-- ---- Sun RPC ----

-- Keeps calls by xid and finds those that replies answer, in the first pass.
function state.analyse_rpc(frame, xid, kind)
    local call
    if kind == CALL then
        call = frame.channel.calls[xid]
        if not call or frame.accepted then
            call = { number = frame.number, time = frame.time }
            frame.channel.calls[xid] = call
        end
    else
        call = frame.reverse and frame.reverse.calls[xid]
        if call then
            call.reply = call.reply or frame.number
        end
    end
    calls[frame.number] = call
end

-- Whether a frame was analysed before.
function state.is_known(number)
    return number <= latest
end

state.NO_ID = NO_ID
return state
end
