//go:build !windows

package main

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
)

// giveAway makes the wanted user the owner of files.
func (c *certCommand) giveAway(paths ...string) error {
	if c.Owner == "" {
		return nil
	}
	uid, gid, err := ownerOf(c.Owner)
	if err != nil {
		return fault.Wrap(fault.Config, err, "find the owner %s", c.Owner).
			WithHint("name a user, or a path that belongs to the user, such as /var/lib/luanette")
	}
	for _, path := range paths {
		if err := os.Chown(path, uid, gid); err != nil {
			return fault.Wrap(fault.Config, err, "give %s to %s", path, c.Owner).WithHint("run it as root")
		}
	}
	return nil
}

// ownerOf returns the ids of a user, or of the owner of a path. A user that systemd makes for a
// service has no name while the service does not run.
func ownerOf(owner string) (uid, gid int, err error) {
	if strings.ContainsRune(owner, os.PathSeparator) {
		return fileowner.IDs(owner)
	}
	found, err := user.Lookup(owner)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(found.Uid); err == nil {
		gid, err = strconv.Atoi(found.Gid)
	}
	return uid, gid, err
}
