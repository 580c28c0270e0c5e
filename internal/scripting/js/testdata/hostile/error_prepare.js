// ends: timeout
Error.prepareStackTrace = () => { for (;;) {} }; null.x
