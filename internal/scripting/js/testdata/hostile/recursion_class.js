// ends: script_error,limit_exceeded
class A { constructor() { new A() } }
new A()
