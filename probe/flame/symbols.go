package flame

import (
	"bufio"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/gather"
)

// symbol is where a function begins.
type symbol struct {
	at   uint64
	name string
}

// symbols are sorted by address.
type symbols []symbol

// name is the function that holds an address.
func (s symbols) name(address uint64) string {
	i, found := slices.BinarySearchFunc(s, address, func(s symbol, a uint64) int { return cmp.Compare(s.at, a) })
	if !found {
		i--
	}
	if i < 0 {
		return fmt.Sprintf("[%#x]", address)
	}
	return s[i].name
}

// sorted orders symbols and keeps the first name of each address.
func sorted(s symbols) symbols {
	slices.SortStableFunc(s, func(a, b symbol) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(s, func(a, b symbol) bool { return a.at == b.at })
}

// readKernelSymbols reads the names of the kernel's functions. Without the right to see addresses they are all zero.
func readKernelSymbols() (symbols, error) {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("read the names of the kernel's functions: %w", err)
	}
	defer func() { _ = file.Close() }()
	var all symbols
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		const address, kind, name = 0, 1, 2
		if len(fields) <= name || !strings.ContainsAny(fields[kind], "tTwW") {
			continue
		}
		at, err := strconv.ParseUint(fields[address], 16, 64)
		if err != nil || at == 0 {
			continue
		}
		all = append(all, symbol{at, fields[name]})
	}
	return sorted(all), nil
}

// program knows the functions of a running program.
type program struct {
	// images are the files that are mapped as code.
	images []image
}

// image is a part of a file that is mapped as code.
type image struct {
	first, end uint64 // addresses
	// shift is what an address is less than in the file's own count.
	shift     uint64
	functions symbols
	file      string
}

// readProgram reads what a process has mapped. What can't be read has no names.
func readProgram(process int) *program {
	p := &program{}
	folder := filepath.Join("/proc", strconv.Itoa(process))
	text, err := os.ReadFile(filepath.Join(folder, "maps"))
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(text)) {
		if i, ok := parseMapping(line); ok {
			i.read(filepath.Join(folder, "root", i.file))
			p.images = append(p.images, i)
		}
	}
	return p
}

// name is the function that holds an address.
func (p *program) name(address uint64) string {
	for _, i := range p.images {
		if address < i.first || address >= i.end {
			continue
		}
		if len(i.functions) == 0 {
			return "[" + filepath.Base(i.file) + "]"
		}
		return i.functions.name(address + i.shift)
	}
	return fmt.Sprintf("[%#x]", address)
}

// parseMapping reads a line of /proc/PID/maps, and is false for what is no code of a file. See proc_pid_maps(5).
func parseMapping(line string) (image, bool) {
	fields := strings.Fields(line)
	const bounds, rights, offset, file = 0, 1, 2, 5
	if len(fields) <= file || !strings.Contains(fields[rights], "x") || !strings.HasPrefix(fields[file], "/") {
		return image{}, false
	}
	low, high, _ := strings.Cut(fields[bounds], "-")
	first, err1 := strconv.ParseUint(low, 16, 64)
	end, err2 := strconv.ParseUint(high, 16, 64)
	at, err3 := strconv.ParseUint(fields[offset], 16, 64)
	if errors.Join(err1, err2, err3) != nil {
		return image{}, false
	}
	return image{first: first, end: end, shift: at - first, file: fields[file]}, true
}

// read finds the functions in the file.
func (i *image) read(path string) {
	file, err := elf.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	for _, s := range file.Progs {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && s.Off <= i.shift+i.first && i.shift+i.first < s.Off+s.Filesz {
			i.shift += s.Vaddr - s.Off // from the place in the file to the address that its symbols have
			break
		}
	}
	i.functions = symbolsOf(file)
}

// symbolsOf reads the tables of a file: its own or, in a stripped one, its table of exports with the one that Go programs
// always keep.
func symbolsOf(file *elf.File) symbols {
	own := functions(file.Symbols)
	if len(own) > 0 {
		return sorted(own)
	}
	exported := functions(file.DynamicSymbols)
	return sorted(append(goFunctions(file, exported), exported...))
}

func functions(table func() ([]elf.Symbol, error)) symbols {
	found, err := table()
	if err != nil {
		return nil // there is none
	}
	var all symbols
	for _, s := range found {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			all = append(all, symbol{s.Value, s.Name})
		}
	}
	return all
}

// goFunctions reads the line table of a Go program. It counts from the beginning of the Go code, which in a program with C
// in it is not the beginning of all code: an exported function that it knows too tells how far off it is.
func goFunctions(file *elf.File, exported symbols) symbols {
	text, lines := file.Section(".text"), file.Section(".gopclntab")
	if text == nil || lines == nil {
		return nil
	}
	data, err := lines.Data()
	if err != nil {
		return nil
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil
	}
	off := uint64(0)
	for _, s := range exported {
		if f := table.LookupFunc(s.name); f != nil {
			off = s.at - f.Entry
			break
		}
	}
	return gather.Each(table.Funcs, func(f gosym.Func) symbol { return symbol{f.Entry + off, f.Name} })
}
