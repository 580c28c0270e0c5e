// ends: timeout
/(?=(a+))*b\1+c/.test('a'.repeat(5000)); /(x+x+)+y/.test('x'.repeat(60))
