// ends: limit_exceeded,timeout
let f = () => 0; for (;;) { const g = f; const big = new Array(100).fill(g); f = () => big }
