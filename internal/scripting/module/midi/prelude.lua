-- Each event of a file is one table, which is in both its track's events and the
-- file's list of all events. Changing the event changes it in both. When the file
-- is written, the lists are compared.
local read_file, write_file, decode, encode, info = midi.read, midi.write, midi.decode, midi.encode, midi.info
local array = json.array
local type, error, ipairs, pairs, next = type, error, ipairs, pairs, next
local setmetatable, getmetatable, tostring, rawequal = setmetatable, getmetatable, tostring, rawequal
local floor, max, min, math_type = math.floor, math.max, math.min, math.type
local sort, move = table.sort, table.move

local function bad(position, name, wanted, value)
  error("bad argument #" .. position .. " to '" .. name .. "' (" .. wanted .. " expected, got " .. type(value) .. ")", 3)
end

-- Gives every event a time: its own, or its delta after the one before it of the
-- same track.
local function timed(events)
  local now = {}
  for _, e in ipairs(events) do
    local track = e.track or 1
    if not e.time then e.time = (now[track] or 0) + (e.delta or 0) end
    now[track] = e.time
  end
end

-- Gives every event the delta its time means, and each track its own count.
local function set_deltas(events)
  local now = {}
  for _, e in ipairs(events) do
    local track = e.track or 1
    e.delta = e.time - (now[track] or 0)
    now[track] = e.time
  end
end

-- Puts events in order of time, in place; ties stay as they are.
local function in_order(events)
  local count, place = #events, {}
  local late = true
  for i = 2, count do
    if events[i].time < events[i - 1].time then late = false; break end
  end
  if late then return end
  for i, e in ipairs(events) do place[i] = { e, e.time, i } end
  sort(place, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3]
  end)
  for i = 1, count do events[i] = place[i][1] end
end

local function all_events(tracks)
  local events = array {}
  for _, track in ipairs(tracks) do
    move(track.events or {}, 1, #(track.events or {}), #events + 1, events)
  end
  return events
end

-- Stores the file as it was read, to find out later what the script changed.
local File = "midi.file"

local function open(score)
  local events = all_events(score.tracks)
  in_order(events)
  score.events = events
  return setmetatable(score, { __name = File, events = move(events, 1, #events, 1, {}) })
end

function midi.read(path) return open(read_file(path)) end

function midi.decode(bytes) return open(decode(bytes)) end

-- Reports whether two lists have the same events, in any order.
local function same(a, b)
  if #a ~= #b then return false end
  local count = {}
  for _, e in ipairs(a) do count[e] = (count[e] or 0) + 1 end
  for _, e in ipairs(b) do
    if not count[e] then return false end
    count[e] = count[e] > 1 and count[e] - 1 or nil
  end
  return true
end

-- Returns which of a file's two lists is to be written.
local function by_events(file)
  if not file.events then return false end
  if not file.tracks then return true end
  local meta = getmetatable(file)
  local as_read = type(meta) == "table" and meta.__name == File and meta.events
  if not as_read then return false end
  local tracks = all_events(file.tracks)
  if same(file.events, tracks) or same(file.events, as_read) then return false end
  if same(tracks, as_read) then return true end
  error("both events and tracks of the file were changed, and differently; set one of them to nil", 0)
end

-- Distributes events to their tracks.
local function dealt(file)
  timed(file.events)
  local tracks, last = {}, file.tracks and #file.tracks or 1
  for _, e in ipairs(file.events) do
    local i = e.track or 1
    if math_type(i) ~= "integer" or i < 1 or i > 65535 then
      error("an event's track must be a whole number from 1 on, not " .. tostring(i), 0)
    end
    last = max(last, i)
    tracks[i] = tracks[i] or {}
    tracks[i][#tracks[i] + 1] = e
  end
  for i = 1, last do
    local was = file.tracks and file.tracks[i]
    tracks[i] = { events = tracks[i] or {}, tail = was and was.tail }
  end
  return tracks
end

-- Returns what the host writes: the file's own fields and its tracks.
local function plain(file, name, position)
  if type(file) ~= "table" or not (file.tracks or file.events) then
    bad(position, name, "table with tracks or events", file)
  end
  local tracks = array {}
  for i, track in ipairs(by_events(file) and dealt(file) or file.tracks) do
    if type(track) ~= "table" or type(track.events) ~= "table" then
      error("track " .. i .. " has no list of events", 3)
    end
    local events = track.events
    tracks[i] = { events = next(events) == nil and array {} or events, tail = track.tail }
  end
  return {
    format = file.format or (#tracks > 1 and 1 or 0),
    ticks_per_beat = file.ticks_per_beat,
    frames_per_second = file.frames_per_second,
    ticks_per_frame = file.ticks_per_frame,
    running_status = file.running_status,
    header_extra = file.header_extra,
    trailing = file.trailing,
    chunks = file.chunks,
    tracks = tracks,
  }
end

function midi.write(path, file) return write_file(path, plain(file, "write", 2)) end

function midi.encode(file) return (encode(plain(file, "encode", 1))) end

function midi.info(file)
  if type(file) == "string" then return info(read_file(file)) end
  return info(plain(file, "info", 1))
end

-- Returns the list of events of an argument: the argument itself, or that of a file or track.
local function list_of(events, name)
  if type(events) ~= "table" then bad(1, name, "list of events", events) end
  if events.events then return events.events end
  if events.tracks then return all_events(events.tracks) end
  return events
end

local pitched = { note_on = true, note_off = true, aftertouch = true }

function midi.transpose(events, semitones)
  local list = list_of(events, "transpose")
  if type(semitones) ~= "number" then bad(2, "transpose", "number", semitones) end
  semitones = floor(semitones + 0.5)
  for _, e in ipairs(list) do
    if pitched[e.type] then e.note = min(max(e.note + semitones, 0), 127) end
  end
  return events
end

-- A note whose start and end fall on the same grid line lasts one step.
function midi.quantize(events, grid)
  local list = list_of(events, "quantize")
  if type(grid) ~= "number" then bad(2, "quantize", "number", grid) end
  if grid <= 0 then return events end
  timed(list)
  in_order(list)
  local sounding, latest = {}, {}
  for _, e in ipairs(list) do
    local was, track = e.time, e.track or 1
    local at = floor(floor(was / grid + 0.5) * grid + 0.5)
    if pitched[e.type] and e.type ~= "aftertouch" then
      local key = (track * 16 + (e.channel or 0)) * 128 + e.note
      if e.type == "note_on" and (e.velocity or 1) > 0 then
        sounding[key] = { was, at }
      else
        local on = sounding[key]
        if on and on[1] < was and on[2] == at then at = floor(at + grid + 0.5) end
        sounding[key] = nil
      end
    elseif e.meta_type == "end_of_track" then
      at = max(at, latest[track] or 0)
    end
    latest[track] = max(at, latest[track] or 0)
    e.time = at
  end
  in_order(list)
  set_deltas(list)
  return events
end

function midi.filter(events, keep)
  local list = list_of(events, "filter")
  if type(keep) ~= "function" then bad(2, "filter", "function", keep) end
  local kept = array {}
  for i, e in ipairs(list) do
    if keep(e, i) then kept[#kept + 1] = e end
  end
  return kept
end

local function copy(e)
  local new = {}
  for k, v in pairs(e) do new[k] = v end
  new.track = nil
  return new
end

-- Converts the times of a track to another resolution.
local function scaled(time, from, to)
  if from == to then return time end
  return floor(time * to / from + 0.5)
end

function midi.merge(tracks)
  if type(tracks) ~= "table" then bad(1, "merge", "list of tracks", tracks) end
  local resolution
  for _, track in ipairs(tracks) do resolution = resolution or track.ticks_per_beat end
  local events, last = array {}, 0
  for i, track in ipairs(tracks) do
    if type(track) ~= "table" then error("bad argument #1 to 'merge' (item " .. i .. " is not a track)", 2) end
    local list = list_of(track, "merge")
    timed(list)
    for _, e in ipairs(list) do
      local new = copy(e)
      new.time = scaled(e.time, track.ticks_per_beat or resolution, resolution)
      last = max(last, new.time)
      if e.meta_type ~= "end_of_track" then events[#events + 1] = new end
    end
  end
  in_order(events)
  events[#events + 1] = { type = "meta", time = last, delta = 0, meta_type = "end_of_track" }
  set_deltas(events)
  return { format = 0, ticks_per_beat = resolution, events = events }
end
