package confine

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// newRoot is where the new root is built. Everything that is needed from below it is
// opened before.
const newRoot = "/tmp"

// deviceFiles are the devices of every sandbox.
func deviceFiles() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

// tree is a part of the file system that is not yet attached at its place.
type tree struct {
	path   string
	fd     int
	folder bool
}

// mount makes a root for the program and enters it: with OwnRoot one that has the paths
// of the policy only, otherwise a read-only copy of ours without the hidden paths.
func (p *Policy) mount() error {
	if err := step("private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		return err
	}
	trees, links, err := p.openTrees()
	if err != nil {
		return err
	}
	hidden := p.covered() // before newRoot covers those below it
	if err := p.mountRoot(); err != nil {
		return err
	}
	if err := step("folders", p.mountScratch()); err != nil {
		return err
	}
	if err := attach(trees, hidden, links); err != nil {
		return err
	}
	if err := p.attachNameFiles(); err != nil {
		return err
	}
	// Before the old root is left: the kernel wants to see a complete /proc.
	if err := step("proc", unix.Mount("proc", newRoot+"/proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")); err != nil {
		return err
	}
	return step("root", enterRoot())
}

// openTrees opens the policy's paths and the devices. A path that leads through symbolic
// links is opened where it leads to; links has the way there.
func (p *Policy) openTrees() (trees []tree, links map[string]string, err error) {
	links = map[string]string{}
	flags := map[string]uint64{}
	replaced := p.nameFiles()
	add := func(paths []string, attributes uint64) {
		for _, path := range paths {
			real, err := filepath.EvalSymlinks(path)
			if err != nil || real == "/" {
				continue // what is absent cannot be shown
			}
			if real != path {
				links[path] = real
			}
			if _, other := replaced[path]; !other {
				flags[real] = attributes
			}
		}
	}
	add(p.Read, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	add(p.Write, p.writableFlags())
	add(deviceFiles(), unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	for _, path := range sortedByDepth(maps.Keys(flags)) {
		t, err := openTree(path, flags[path])
		if err != nil {
			return nil, nil, step("open "+path, err)
		}
		trees = append(trees, t)
	}
	return trees, links, nil
}

func (p *Policy) writableFlags() uint64 {
	if p.Exec || !p.OwnRoot {
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	}
	return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
}

func sortedByDepth(paths func(func(string) bool)) []string {
	return slices.SortedFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// openTree copies the mounts at and below a path.
func openTree(path string, attributes uint64) (tree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return tree{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
	return tree{path, fd, info.IsDir()}, err
}

// mountRoot puts at newRoot what everything else is attached to.
func (p *Policy) mountRoot() error {
	if p.OwnRoot {
		return step("root", unix.Mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m"))
	}
	all, err := openTree("/", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return step("root", err)
	}
	return step("root", attachAt(all.fd, newRoot))
}

// mountScratch mounts the folders that every sandbox has for itself.
func (p *Policy) mountScratch() error {
	tmpfs := func(path, options string, flags uintptr) error {
		if p.OwnRoot {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		return unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|flags, options)
	}
	noexec := uintptr(0)
	if p.writableFlags()&unix.MOUNT_ATTR_NOEXEC != 0 {
		noexec = unix.MS_NOEXEC
	}
	if err := tmpfs(newRoot+"/tmp", "mode=1777,size="+strconv.FormatInt(p.Limits.maxTmp(), 10), noexec); err != nil {
		return err
	}
	if err := tmpfs(newRoot+"/dev", "mode=0755,size=64k", unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := os.Mkdir(newRoot+"/dev/shm", 0o777); err != nil {
		return err
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, newRoot+"/dev/"+name); err != nil {
			return err
		}
	}
	if p.OwnRoot {
		if err := os.MkdirAll(newRoot+"/proc", 0o755); err != nil {
			return err
		}
	}
	return unix.Mount("tmpfs", newRoot+"/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777,size=64m")
}

// attach puts the opened trees at their places and covers the hidden paths, from the root
// downwards: the longest path decides. Then it makes the links that lead to the trees.
func attach(trees []tree, hidden []string, links map[string]string) error {
	byPath := map[string]tree{}
	var covers []string // folders
	for _, t := range trees {
		byPath[t.path] = t
	}
	for _, path := range sortedByDepth(slices.Values(slices.AppendSeq(slices.Clone(hidden), maps.Keys(byPath)))) {
		if t, shown := byPath[path]; shown {
			if err := step("mount "+path, t.attach()); err != nil {
				return err
			}
			continue
		}
		folder, err := cover(path)
		if err != nil {
			return step("hide "+path, err)
		}
		if folder {
			covers = append(covers, path)
		}
	}
	for _, path := range covers {
		if err := step("hide "+path, seal(path)); err != nil {
			return err
		}
	}
	for _, path := range sortedByDepth(maps.Keys(links)) {
		link(newRoot+path, links[path])
	}
	return nil
}

// attach puts the tree at its place.
func (t tree) attach() error {
	at := newRoot + t.path
	if err := makePlace(at, t.folder); err != nil {
		return err
	}
	return attachAt(t.fd, at)
}

// link makes a symbolic link, unless something is there already. Below a read-only folder
// it is there, or was never visible.
func link(at, target string) {
	if _, err := os.Lstat(at); err == nil {
		return
	}
	if makePlace(filepath.Dir(at), true) == nil {
		_ = os.Symlink(target, at)
	}
}

// makePlace makes the empty folder or file that something is mounted on.
func makePlace(at string, folder bool) error {
	if _, err := os.Stat(at); err == nil {
		return nil
	}
	if folder {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o600)
}

func attachAt(fd int, at string) error {
	defer func() { _ = unix.Close(fd) }()
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// covered are the hidden paths that exist and that the policy does not open by name.
func (p *Policy) covered() (paths []string) {
	for _, path := range p.Hide {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.Contains(p.Read, path) && !slices.Contains(p.Write, path) && !slices.Contains(paths, real) {
			paths = append(paths, real)
		}
	}
	return paths
}

// cover mounts an empty folder or file over a hidden path, if it is visible. What the
// policy opens inside the folder is attached later.
func cover(path string) (folder bool, err error) {
	at := newRoot + path
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // it is not visible
	case info.IsDir():
		return true, unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=64k")
	}
	return false, attachFile(at, "", 0)
}

// attachFile puts a file of our own at a place in the new root.
func attachFile(at, content string, mode os.FileMode) error {
	const file = newRoot + "/dev/.file"
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	t, err := openTree(file, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return attachAt(t.fd, at)
}

// seal makes a covered folder unreadable. The ways to what is inside stay open.
func seal(path string) error {
	at := newRoot + path
	mode := os.FileMode(0)
	if inside, err := os.ReadDir(at); err == nil && len(inside) > 0 {
		mode = 0o111
	}
	if err := os.Chmod(at, mode); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// enterRoot makes newRoot the root and leaves the old one.
func enterRoot() error {
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}
