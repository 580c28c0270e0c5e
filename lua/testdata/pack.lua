-- string.pack, unpack, packsize
local function try(f, ...) print(select(2, pcall(f, ...))) end
local function hex(s) return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local pack, unpack, size = string.pack, string.unpack, string.packsize

print(hex(pack("<i4", 1)), hex(pack(">i4", 1)), hex(pack("<i3", -2)), hex(pack("b", -1)), hex(pack("B", 255)), hex(pack("<h", 258)), hex(pack(">I16", -1)), hex(pack("<i16", -2)))
print(hex(pack("<d", 1.5)), hex(pack(">f", 0.1)), hex(pack("<n", -0.0)), hex(pack("z", "hi")), hex(pack("<s1", "hi")), hex(pack("<s2", "hi")), hex(pack("c5", "hi")))
print(hex(pack("<!4 b i4", 1, 2)), hex(pack("<!8 b Xi8 b", 1, 2)), hex(pack("<bxb", 1, 2)), hex(pack(" < i2 > i2 = i2", 1, 1, 1)))
print(unpack("<i4", "\1\0\0\0"), unpack(">i4", "\0\0\0\1"), unpack("<i3", "\254\255\255"), unpack("z", "hi\0rest"), unpack("<s1", "\2hi!"), unpack("c3", "hello"))
print(unpack("<d", pack("<d", math.pi)), unpack("<f", pack("<f", 0.5)), unpack("<i4 i4", "\1\0\0\0\2\0\0\0"), unpack("<i2", "xx\1\0", 3), unpack("<b", "abc", -1))
print(size("i4"), size("<!8 b i8"), size("bhilj"), size("fdn"), size("c10"), size("!4 i2 i4"), size(""))
print(unpack("<I8", "\255\255\255\255\255\255\255\255"), unpack("<I16", ("\1"):rep(1) .. ("\0"):rep(15)), unpack("<i16", ("\255"):rep(16)), unpack("<j", pack("<j", math.mininteger)))
try(pack, "b", 128)
try(pack, "B", 256)
try(pack, "B", -1)
try(pack, "i17", 1)
try(pack, "i0", 1)
try(pack, "c", "x")
try(pack, "c1", "xx")
try(pack, "z", "a\0b")
try(pack, "s1", ("x"):rep(256))
try(pack, "y", 1)
try(pack, "Xz")
try(pack, "X")
try(pack, "!3 i4", 1)
try(pack, "i4", "x")
try(pack, "i4", 1.5)
try(unpack, "i4", "abc")
try(unpack, "z", "abc")
try(unpack, "s1", "\5ab")
try(unpack, "i4", "abcd", 6)
try(unpack, "I16", ("\255"):rep(16))
try(size, "s")
try(size, "z")
try(size, "c2147483647c2147483647")
try(size, "i")
for i = 1, 16 do
  local f = "<i" .. i
  local n = i < 8 and -(1 << (8 * i - 1)) or math.mininteger
  assert(unpack(f, pack(f, n)) == n and unpack(">i" .. i, pack(">i" .. i, n)) == n and #pack(f, n) == i)
end
