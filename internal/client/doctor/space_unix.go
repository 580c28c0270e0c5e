//go:build linux || darwin || freebsd

package doctor

import "syscall"

// freeSpace returns the bytes that may still be written to the disk with a folder.
func freeSpace(path string) (free uint64, known bool) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return 0, false
	}
	return uint64(disk.Bavail) * uint64(disk.Bsize), true // the types differ between systems
}
