// ends: timeout
'a'.repeat(30000).replace(/(a*)*b/g, '')
