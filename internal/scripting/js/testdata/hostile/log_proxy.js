// ends: timeout
console.log(new Proxy([], {get(t, k) { for (;;) {} }}))
