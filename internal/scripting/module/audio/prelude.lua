-- A sound's data looks like a list of numbers but is stored as packed bytes, four
-- for each number, until the script writes to it. Then it becomes a list.
local read_wav, write_wav, silence = audio.read_wav, audio.write_wav, audio.silence
local decode, encode, measure = audio.__decode, audio.__encode, audio.__measure
local change, join = audio.__change, audio.__join
audio.__decode, audio.__encode, audio.__measure, audio.__change, audio.__join = nil, nil, nil, nil, nil
local array = json.array
local type, error, ipairs, tostring, tonumber = type, error, ipairs, tostring, tonumber
local setmetatable, getmetatable, rawset = setmetatable, getmetatable, rawset
local pack, unpack_bytes, rep, concat = string.pack, string.unpack, string.rep, table.concat
local unpack, math_type, huge = table.unpack, math.type, math.huge

local function bad(position, name, wanted, value)
  error("bad argument #" .. position .. " to '" .. name .. "' (" .. wanted .. " expected, got " .. type(value) .. ")", 3)
end

local Data = "audio.data"

local function at(bytes, i)
  if math_type(i) ~= "integer" or i < 1 or i > #bytes // 4 then return nil end
  return (unpack_bytes("<f", bytes, 4 * i - 3))
end

local function to_list(data, bytes)
  setmetatable(data, nil)
  for i = 1, #bytes // 4 do rawset(data, i, (unpack_bytes("<f", bytes, 4 * i - 3))) end
  return data
end

local function packed(bytes)
  return setmetatable({}, {
    __name = Data, bytes = bytes,
    __index = function(_, i) return at(bytes, i) end,
    __len = function() return #bytes // 4 end,
    __newindex = function(data, i, v) to_list(data, bytes)[i] = v end,
    __pairs = function(data)
      return function(_, i)
        local v = at(bytes, i + 1)
        if v then return i + 1, v end
      end, data, 0
    end,
  })
end

local function clip(bytes, channels, rate)
  return { data = packed(bytes), channels = channels, sample_rate = rate }
end

-- Returns the bytes of a sound's data in either form.
local function bytes_of(data, position, name)
  if type(data) ~= "table" then bad(position, name, "sound with data", data) end
  local meta = getmetatable(data)
  if type(meta) == "table" and meta.__name == Data then return meta.bytes end
  local parts, count, step = {}, #data, 100
  for i = 1, count, step do
    local last = i + step - 1 < count and i + step - 1 or count
    for j = i, last do
      local v = data[j]
      if type(v) ~= "number" or v ~= v or v == huge or v == -huge then
        error("bad argument #" .. position .. " to '" .. name .. "' (sample " .. j .. " is " .. tostring(v) .. ")", 4)
      end
    end
    parts[#parts + 1] = pack("<" .. rep("f", last - i + 1), unpack(data, i, last))
  end
  return concat(parts)
end

-- Returns a sound as the host expects it: bytes, channels, rate.
local function plain(sound, position, name)
  if type(sound) ~= "table" then bad(position, name, "sound", sound) end
  return bytes_of(sound.data, position, name), sound.channels or 1, sound.sample_rate or 44100
end

function audio.read_wav(path)
  local bytes, channels, rate, info = read_wav(path)
  return clip(bytes, channels, rate), info
end

function audio.decode(content)
  local bytes, channels, rate, info = decode(content)
  return clip(bytes, channels, rate), info
end

local function bits(options) return type(options) == "table" and options.bits or nil end

function audio.write_wav(sound, path, options)
  local bytes, channels, rate = plain(sound, 1, "write_wav")
  write_wav(path, bytes, channels, rate, bits(options))
  return path
end

function audio.encode(sound, options)
  local bytes, channels, rate = plain(sound, 1, "encode")
  return (encode(bytes, channels, rate, bits(options)))
end

local file_info = audio.info
function audio.info(sound)
  if type(sound) == "string" then return file_info(sound) end
  return (measure(plain(sound, 1, "info")))
end

function audio.duration(sound)
  if type(sound) == "string" then return file_info(sound).duration end
  local bytes, channels, rate = plain(sound, 1, "duration")
  return #bytes // 4 / channels / rate
end

function audio.peak(sound)
  local _, peak = measure(plain(sound, 1, "peak"))
  return peak
end

function audio.rms(sound)
  local _, _, rms = measure(plain(sound, 1, "rms"))
  return rms
end

function audio.silence(seconds, rate, channels) return clip(silence(seconds, rate, channels)) end

local function changed(name, sound, a, b, named)
  local bytes, channels, rate = plain(sound, 1, name)
  return clip(change(name, bytes, channels, rate, { A = a, B = b, Named = named }))
end

local function number(value, otherwise, position, name)
  if value == nil then value = otherwise end
  if type(value) ~= "number" then bad(position, name, "number", value) end
  return value
end

-- resample(sound, to, quality?), or with the current rate first: (sound, from, to, quality?).
function audio.resample(sound, from, to, quality)
  if type(to) ~= "number" then from, to, quality = nil, from, to end
  local at_rate = sound
  if from and type(sound) == "table" then
    at_rate = { data = sound.data, channels = sound.channels, sample_rate = from }
  end
  return changed("resample", at_rate, number(to, nil, 2, "resample"), 0, quality or "medium")
end

function audio.to_mono(sound) return changed("to_mono", sound) end

function audio.to_stereo(sound) return changed("to_stereo", sound) end

function audio.trim(sound, from, to)
  return changed("trim", sound, number(from, 0, 2, "trim"), number(to, 1e9, 3, "trim"))
end

function audio.pad(sound, before, after)
  return changed("pad", sound, number(before, 0, 2, "pad"), number(after, 0, 3, "pad"))
end

function audio.fade(sound, fade_in, fade_out, curve)
  return changed("fade", sound, number(fade_in, 0, 2, "fade"), number(fade_out, 0, 3, "fade"), curve or "linear")
end

function audio.gain(sound, db) return changed("gain", sound, number(db, nil, 2, "gain")) end

function audio.normalize(sound, db) return changed("normalize", sound, number(db, 0, 2, "normalize")) end

function audio.reverse(sound) return changed("reverse", sound) end

local function joined(name, sounds, gains)
  if type(sounds) ~= "table" then bad(1, name, "list of sounds", sounds) end
  local parts, clips = {}, array {}
  for i, sound in ipairs(sounds) do
    local bytes, channels, rate = plain(sound, 1, name)
    parts[i] = bytes
    clips[i] = { Bytes = #bytes, Channels = channels, Rate = rate }
  end
  return clip(join(name, concat(parts), { Clips = clips, Gains = gains }))
end

function audio.mix(sounds, gains)
  if gains ~= nil and type(gains) ~= "table" then bad(2, "mix", "list of decibels", gains) end
  return joined("mix", sounds, gains and #gains > 0 and gains or nil)
end

function audio.concat(sounds) return joined("concat", sounds) end
