// ends: timeout
a: for (;;) { b: for (;;) { continue a } }
