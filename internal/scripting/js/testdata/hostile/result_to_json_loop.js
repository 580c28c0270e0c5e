// ends: timeout
({toJSON() { for (;;) {} }})
