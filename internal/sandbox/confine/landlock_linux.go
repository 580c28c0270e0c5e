package confine

import (
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock. Those of files alone may be given to a file, the others only to a
// folder.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	execute   = unix.LANDLOCK_ACCESS_FS_EXECUTE
	fileOnly  = execute | readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	allRights = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV<<1 - 1

	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	write   = allRights &^ (execute | devices)
)

// landlockABI is the kernel's version of Landlock; 0 if it has none.
func landlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// ruleset is a Landlock ruleset that is not yet enforced.
type ruleset struct {
	fd     int
	rights uint64 // those that the kernel knows
}

// landlockRules makes the ruleset of the policy; nil if it has none.
func (p *Policy) landlockRules() (*ruleset, error) {
	abi := landlockABI()
	if !p.Landlock || abi == 0 {
		return nil, nil // there are no rules
	}
	attr := unix.LandlockRulesetAttr{Access_fs: rightsOf(abi)}
	if p.Network != HostNetwork && abi >= 4 {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), rulesetSize(abi), 0)
	if errno != 0 {
		return nil, errno
	}
	r := &ruleset{fd: int(fd), rights: attr.Access_fs}
	if err := p.addFolders(r); err != nil {
		return nil, err
	}
	if p.Network == GatewayNetwork && abi >= 4 {
		return r, p.addPorts(r)
	}
	return r, nil
}

// addPorts lets TCP connect to the gateway.
func (p *Policy) addPorts(r *ruleset) error {
	ports := []int{p.Port}
	if p.Namespaces {
		ports = append(ports, p.Direct...)
	}
	for _, port := range ports {
		if err := r.allowPort(port); err != nil {
			return err
		}
	}
	return nil
}

// rightsOf are the rights to files that a version of Landlock knows.
func rightsOf(abi int) uint64 {
	rights := uint64(allRights)
	if abi < 5 {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi < 3 {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < 2 {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	return rights
}

// rulesetSize is the size of the attributes in a version of Landlock.
func rulesetSize(abi int) uintptr {
	switch {
	case abi < 4:
		return 8
	case abi < 6:
		return 16
	}
	return 24
}

// addFolders adds the rules of the policy's paths.
func (p *Policy) addFolders(r *ruleset) error {
	read := uint64(readFile | readDir | execute)
	writable := uint64(write | readFile | readDir)
	if p.Exec || !p.OwnRoot {
		writable |= execute
	}
	grants := map[string]uint64{"/proc": readFile | readDir}
	for _, device := range deviceFiles() {
		grants[device] = readFile | writeFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	switch {
	case p.Namespaces:
		grants["/tmp"], grants["/dev/shm"] = writable, writable
		grants["/"] = readDir // of what is visible
	default:
		grants["/dev"] = readDir
	}
	for _, path := range p.readable() {
		grants[path] |= read
	}
	if !p.OwnRoot && !p.Namespaces {
		grants["/"] |= readDir
	}
	for _, path := range p.Write {
		grants[path] |= writable
	}
	for path, rights := range grants {
		if err := r.allow(path, rights); err != nil {
			return &os.PathError{Op: "landlock", Path: path, Err: err}
		}
	}
	return nil
}

// readable lists the paths to read. Landlock cannot take a folder out of one that is
// allowed: where mounts do not hide them, everything beside the hidden folders is listed.
func (p *Policy) readable() []string {
	roots := p.Read
	if !p.OwnRoot {
		roots = append([]string{"/"}, p.Read...)
	}
	if p.Namespaces {
		return roots
	}
	var paths []string
	for _, root := range roots {
		if slices.ContainsFunc(p.Hide, func(h string) bool { return h != root && Below(h, root) }) {
			paths = append(paths, beside(root, p.Hide)...)
		} else {
			paths = append(paths, root)
		}
	}
	return paths
}

// beside lists what is in a folder, without the hidden paths.
func beside(folder string, hidden []string) (paths []string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case within(path, hidden):
		case slices.ContainsFunc(hidden, func(h string) bool { return Below(h, path) }):
			paths = append(paths, beside(path, hidden)...)
		case entry.Type()&os.ModeSymlink == 0: // where it leads to is listed itself
			paths = append(paths, path)
		}
	}
	return paths
}

// allow gives rights to a path. One that does not exist is left out.
func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // what is absent needs no rights
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	rights &= r.rights
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileOnly
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	return r.add(unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr))
}

// allowPort lets TCP connect to one port.
func (r *ruleset) allowPort(port int) error {
	const rulePort = 2
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	return r.add(rulePort, unsafe.Pointer(&attr))
}

func (r *ruleset) add(kind uintptr, attr unsafe.Pointer) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), kind, uintptr(attr), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// enforce applies the rules to this thread and to what it forks.
func (r *ruleset) enforce() error {
	if r == nil {
		return nil
	}
	defer func() { _ = unix.Close(r.fd) }()
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
