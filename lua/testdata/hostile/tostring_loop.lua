while true do tostring({}) tostring(1.5) end
