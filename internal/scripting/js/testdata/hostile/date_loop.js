// ends: timeout
for (;;) Date.now()
