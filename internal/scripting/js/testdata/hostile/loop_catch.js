// ends: timeout
while (true) { try { while (true) {} } catch {} finally { continue } }
