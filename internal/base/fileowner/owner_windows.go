package fileowner

// Of is -1: files of services have access lists.
func Of(string) int { return unknown }

// Give does nothing.
func Give(string, string) error { return nil }
