package localpg

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
)

// identity is the user as whom Postgres runs; nil is the user we are.
type identity struct {
	uid, gid uint32
}

// chooseIdentity returns who runs Postgres on the data in dir. Postgres refuses
// root, so as root it is the owner of existing data, else the user postgres when
// there is one, else nobody.
func chooseIdentity(data string) *identity {
	if os.Geteuid() != 0 {
		return nil
	}
	if who := ownerOf(data); who != nil && who.uid != 0 {
		return who
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &identity{uid: uint32(uid), gid: uint32(gid)}
		}
	}
	return &identity{uid: 65534, gid: 65534}
}

// reaches reports whether the user may enter dir from the root of the file
// system. Only trying tells: groups, ACLs and mounts all have a say.
func (who *identity) reaches(ctx context.Context, dir string) bool {
	if who == nil {
		return true
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `cd -- "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes(who)
	return cmd.Run() == nil
}

// own gives dir, with all that is in it, to the user.
func (who *identity) own(dir string) error {
	if who == nil {
		return nil
	}
	root, err := os.OpenRoot(dir) // so that no link that is put in meanwhile leads out of it
	if err != nil {
		return fmt.Errorf("give %s to user %d: %w", dir, who.uid, err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(path, int(who.uid), int(who.gid))
	})
	if err != nil {
		return fmt.Errorf("give %s to user %d: %w", dir, who.uid, err)
	}
	return nil
}
