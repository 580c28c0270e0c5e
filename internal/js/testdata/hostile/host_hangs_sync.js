// ends: timeout
hang()
