package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"netdelta/experiment/imported"
)

// namesNetwork stands for the network in a pattern of names.
const namesNetwork = "{network}"

// sources reads the arguments. The files of a network may also follow it one by one, as a shell leaves them where a pattern
// matched several.
func sources(args []string) ([]imported.Source, error) {
	var all []imported.Source
	for _, a := range args {
		if strings.Contains(a, namesNetwork) {
			found, err := named(a)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		network, files, given := strings.Cut(a, "=")
		if given && network != "" && !strings.ContainsAny(network, "/\\") {
			all = append(all, imported.Source{Network: network})
		} else {
			files = a
			if len(all) == 0 {
				return nil, fmt.Errorf("which network is %s of? write NETWORK=%s", a, a)
			}
		}
		last := &all[len(all)-1]
		for _, file := range strings.Split(files, ",") {
			found, err := matching(file)
			if err != nil {
				return nil, err
			}
			last.Files = append(last.Files, found...)
		}
	}
	return all, nil
}

// matching are the files of a name: a shell does not know the pattern after NETWORK= for one. A folder is all files in it.
func matching(file string) ([]string, error) {
	switch {
	case file == "":
		return nil, errors.New("a network has no file: write NETWORK=FILE, and commas without spaces between several")
	case !strings.ContainsAny(file, "*?["):
		return within(file)
	}
	names, err := filepath.Glob(strings.TrimRight(file, "/"))
	if err == nil && len(names) == 0 {
		err = errors.New("no file has such a name")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	slices.Sort(names)
	var all []string
	for _, name := range names {
		found, err := within(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// within are the files of a folder and of the folders in it, in the order of their names, but for hidden ones; of a file that file. A
// name that is not there is kept: opening it gives the error.
func within(name string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == name:
			all = append(all, name)
			return nil
		case err != nil:
			return err
		case path != name && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir():
			all = append(all, path)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the folder has no file")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", name, err)
	}
	return all, nil
}

// named are the files that a pattern matches, by the network in their names. The longest name counts: of calico-vxlan-1.json that is
// calico-vxlan for {network}-*.json.
func named(pattern string) ([]imported.Source, error) {
	names, err := matching(strings.ReplaceAll(pattern, namesNetwork, "*"))
	if err != nil {
		return nil, err
	}
	expression := regexp.QuoteMeta(filepath.Clean(pattern))
	for glob, meant := range map[string]string{regexp.QuoteMeta(namesNetwork): "([^/]+)", `\*`: "[^/]*", `\?`: "[^/]"} {
		expression = strings.ReplaceAll(expression, glob, meant)
	}
	read, err := regexp.Compile("^" + expression + "(/.*)?$")
	if err != nil || strings.ContainsAny(pattern, "[]") {
		return nil, fmt.Errorf("%s: a pattern with %s may hold * and ?, and nothing else", pattern, namesNetwork)
	}
	var all []imported.Source
	for _, name := range names {
		groups := read.FindStringSubmatch(filepath.Clean(name))
		if groups == nil {
			continue
		}
		network := groups[1]
		i := slices.IndexFunc(all, func(s imported.Source) bool { return s.Network == network })
		if i < 0 {
			i, all = len(all), append(all, imported.Source{Network: network})
		}
		all[i].Files = append(all[i].Files, name)
	}
	return all, nil
}
