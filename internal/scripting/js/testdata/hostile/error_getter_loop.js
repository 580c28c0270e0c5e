// ends: timeout
throw {get message() { for (;;) {} }, stack: ''}
