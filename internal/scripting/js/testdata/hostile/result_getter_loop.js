// ends: timeout
({get x() { for (;;) {} }})
