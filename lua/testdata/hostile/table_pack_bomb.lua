local keep = {}
while true do keep[#keep + 1] = table.pack(table.unpack({}, 1, 200)) end
