package confine

import "path/filepath"

// nameFiles are the files that a program in a network of its own has in place of the
// computer's: all names but its own are asked from the gateway.
func (p *Policy) nameFiles() map[string]string {
	if !p.ownGateway() {
		return nil
	}
	return map[string]string{
		"/etc/resolv.conf": "nameserver 127.0.0.1\n",
		"/etc/hosts":       "127.0.0.1 localhost sandbox\n",
	}
}

// attachNameFiles puts the files at their places in the new root.
func (p *Policy) attachNameFiles() error {
	for path, content := range p.nameFiles() {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path
		}
		if makePlace(newRoot+real, false) != nil {
			continue // in a folder that has no such file and is only read: programs ask the gateway only if they know it
		}
		if err := attachFile(newRoot+real, content, 0o444); err != nil {
			return step("file "+path, err)
		}
	}
	return nil
}
