package soc

// Chip is one value of --soc_version. Counts and sizes are 0 where the platform file
// of the chip does not say.
type Chip struct {
	// Name is what --soc_version takes and the runtime calls the chip.
	Name   string
	Family FamilyName
	// Arch is the architecture of the AI Core.
	Arch string

	// AICores is the number of AI Cores. Where cube and vector units are cores of
	// their own, CubeCores and VectorCores count them; CubeCores is 0 elsewhere.
	AICores, CubeCores, VectorCores int
	AICPUs                          int

	L2Bytes     int64
	MemoryBytes int64 // on the device
	MHz         int   // of the cube unit

	// Development marks chips of which only development files are known.
	Development bool
	// Caution is what one should know before taking this name; empty for most.
	Caution string
}

// FamilyName is the short name of a family, as operator libraries have it.
type FamilyName string

// The families.
const (
	Family310  FamilyName = "Ascend310"
	Family310P FamilyName = "Ascend310P"
	Family310B FamilyName = "Ascend310B"
	Family910  FamilyName = "Ascend910"
	Family910B FamilyName = "Ascend910B"
	FamilyA3   FamilyName = "Ascend910_93"
	Family350  FamilyName = "Ascend350"
	Family950  FamilyName = "Ascend950"
	Family031  FamilyName = "Ascend031"
	Family035  FamilyName = "Ascend035" // nano chips: .exeom files, ATC mode 30
)

// MemoryKind is the device memory's technology.
type MemoryKind string

// The memory kinds.
const (
	HBM           MemoryKind = "HBM"
	DDR           MemoryKind = "DDR"
	UnknownMemory MemoryKind = ""
)

// CoreNumber is the grammar of --aicore_num on a family.
type CoreNumber string

// The grammars.
const (
	CubeAndVector CoreNumber = "C|V" // cube and vector cores apart
	SingleNumber  CoreNumber = "N"   // AI Cores
)

// QueryGears is how many gears the runtime's queries can tell of: a model may have
// more, but nobody can ask for them.
const QueryGears = 128

// Family is what the chips of a family share.
type Family struct {
	Name   FamilyName
	Memory MemoryKind
	// DocumentedGears is the highest number of gears that the compiler's guide
	// allows; the compiler itself does not check.
	DocumentedGears int
	// Streams is how many streams a device has for all processes together, default
	// ones counted; 0 where it is not documented.
	Streams    int
	CoreNumber CoreNumber
	// BFloat16 and HiFloat8 say which precision modes the compiler's guide allows.
	BFloat16, HiFloat8 bool
	// Engines is set when operator rows say which engine computes them here.
	Engines bool
}

// Gears is the highest number of gears that can be built and used.
func (f Family) Gears() int { return min(f.DocumentedGears, QueryGears) }

// families is the one table of what chips share.
var families = []Family{
	{Name: Family310, Memory: DDR, DocumentedGears: 100, CoreNumber: SingleNumber},
	{Name: Family310P, Memory: DDR, DocumentedGears: 100, Streams: 1024, CoreNumber: SingleNumber, Engines: true},
	{Name: Family310B, Memory: DDR, DocumentedGears: 100, Streams: 512, CoreNumber: SingleNumber, BFloat16: true},
	{Name: Family910, Memory: HBM, DocumentedGears: 100, Streams: 2048, CoreNumber: SingleNumber, Engines: true},
	{Name: Family910B, Memory: HBM, DocumentedGears: 100, Streams: 1984, CoreNumber: CubeAndVector, BFloat16: true, Engines: true},
	{Name: FamilyA3, Memory: HBM, DocumentedGears: 100, Streams: 1984, CoreNumber: CubeAndVector, BFloat16: true, Engines: true},
	{Name: Family350, DocumentedGears: 100, CoreNumber: CubeAndVector}, // the grammar is that of 950, by its cores
	{Name: Family950, Memory: HBM, DocumentedGears: 256, Streams: 1984, CoreNumber: CubeAndVector, BFloat16: true, HiFloat8: true},
	{Name: Family031, DocumentedGears: 100, CoreNumber: SingleNumber},
	{Name: Family035, DocumentedGears: 100, CoreNumber: SingleNumber},
}

// The architectures.
const (
	arch200 = "AIC-M-200"
	arch300 = "AIC-M-300"
	arch100 = "AIC-C-100"
	arch220 = "AIC-C-220"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// chips is the one table of chips, family by family. The 310P files count their
// memory in powers of ten.
var chips = append([]Chip{
	{Name: "Ascend310", Family: Family310, Caution: "current CANN has no platform file for it; releases up to 5 compiled for it"},

	{Name: "Ascend310P1", Family: Family310P, Arch: arch200, AICores: 10, VectorCores: 8, AICPUs: 8, L2Bytes: 16 * mib, MemoryBytes: 24e9, MHz: 1060},
	{Name: "Ascend310P3", Family: Family310P, Arch: arch200, AICores: 8, VectorCores: 7, AICPUs: 7, L2Bytes: 16 * mib, MemoryBytes: 24e9, MHz: 1060},
	{Name: "Ascend310P5", Family: Family310P, Arch: arch200, AICores: 8, VectorCores: 7, AICPUs: 8, L2Bytes: 16 * mib, MemoryBytes: 24e9, MHz: 800},
	{Name: "Ascend310P7", Family: Family310P, Arch: arch200, AICores: 8, VectorCores: 7, AICPUs: 8, L2Bytes: 16 * mib, MemoryBytes: 24e9, MHz: 550},

	{Name: "Ascend310B1", Family: Family310B, Arch: arch300, AICores: 1, CubeCores: 1, VectorCores: 1, AICPUs: 4, L2Bytes: 4 * mib, MemoryBytes: 32 * gib, MHz: 1224},
	{Name: "Ascend310B2", Family: Family310B, Arch: arch300, AICores: 1, CubeCores: 1, VectorCores: 1, AICPUs: 4, L2Bytes: 4 * mib, MHz: 1224},
	{Name: "Ascend310B3", Family: Family310B, Arch: arch300, AICores: 1, CubeCores: 1, VectorCores: 1, AICPUs: 4, L2Bytes: 4 * mib, MHz: 1224},
	{Name: "Ascend310B4", Family: Family310B, Arch: arch300, AICores: 1, CubeCores: 1, VectorCores: 1, AICPUs: 4, L2Bytes: 4 * mib, MHz: 500},

	{Name: "Ascend910A", Family: Family910, Arch: arch100, AICores: 32, AICPUs: 4, L2Bytes: 32 * mib, MHz: 1000},
	{Name: "Ascend910ProA", Family: Family910, Arch: arch100, AICores: 32, AICPUs: 4, L2Bytes: 32 * mib, MHz: 1100},
	{Name: "Ascend910PremiumA", Family: Family910, Arch: arch100, AICores: 32, AICPUs: 4, L2Bytes: 32 * mib, MHz: 1220},
	{Name: "Ascend910B", Family: Family910, Arch: arch100, AICores: 30, AICPUs: 6, L2Bytes: 32 * mib, MHz: 900,
		Caution: "this is a chip of the first Ascend910 generation; models for it do not load on Ascend910B1 to Ascend910B4 (Atlas A2)"},
	{Name: "Ascend910ProB", Family: Family910, Arch: arch100, AICores: 30, AICPUs: 4, L2Bytes: 32 * mib, MHz: 1150},

	{Name: "Ascend910B1", Family: Family910B, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1850},
	{Name: "Ascend910B2", Family: Family910B, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1800},
	{Name: "Ascend910B2C", Family: Family910B, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MHz: 1800},
	{Name: "Ascend910B3", Family: Family910B, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1800},
	{Name: "Ascend910B4", Family: Family910B, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 96 * mib, MemoryBytes: 32 * gib, MHz: 1500},
	{Name: "Ascend910B4-1", Family: Family910B, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 168 * mib, MemoryBytes: 32 * gib, MHz: 1500},

	{Name: "Ascend910_9362", Family: FamilyA3, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 168 * mib, MemoryBytes: 64 * gib, MHz: 1500},
	{Name: "Ascend910_9363", Family: FamilyA3, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 168 * mib, MemoryBytes: 32 * gib, MHz: 1500},
	{Name: "Ascend910_9372", Family: FamilyA3, Arch: arch220, AICores: 20, CubeCores: 20, VectorCores: 40, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1800},
	{Name: "Ascend910_9381", Family: FamilyA3, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1800},
	{Name: "Ascend910_9382", Family: FamilyA3, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1800},
	{Name: "Ascend910_9391", Family: FamilyA3, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1850},
	{Name: "Ascend910_9392", Family: FamilyA3, Arch: arch220, AICores: 24, CubeCores: 24, VectorCores: 48, AICPUs: 6, L2Bytes: 192 * mib, MemoryBytes: 64 * gib, MHz: 1850},

	{Name: "Ascend031", Family: Family031, Arch: "AIC-T-300", AICores: 1},
	{Name: "Ascend035", Family: Family035, Arch: "AIC-N-350", AICores: 1},
	{Name: "Ascend035A", Family: Family035, Arch: "AIC-N-350", AICores: 1},
	{Name: "Ascend035B", Family: Family035, Arch: "AIC-N-350", AICores: 1},
}, developmentChips()...)

// developmentCores are chips of development files, which say their cores only.
var developmentCores = []struct {
	family       FamilyName
	prefix       string
	numbers      []string
	cube, vector int
}{
	{Family350, "Ascend350_", []string{"354f"}, 14, 28},
	{Family350, "Ascend350_", []string{"355e"}, 16, 32},
	{Family950, "Ascend950PR_", []string{"950z"}, 4, 8},
	{Family950, "Ascend950PR_", []string{"9579", "957b", "957bx", "957c", "957d"}, 28, 56},
	{Family950, "Ascend950PR_", []string{"9589", "958b"}, 32, 64},
	{Family950, "Ascend950PR_", []string{"9599"}, 36, 72},
	{Family950, "Ascend950DT_", []string{"950x", "950y"}, 8, 16},
	{Family950, "Ascend950DT_", []string{"9571", "9572", "9573", "9574", "9575", "9576", "9577", "9578"}, 28, 56},
	{Family950, "Ascend950DT_", []string{"9581", "9582", "9583", "9584", "9585", "9586", "9587", "9588", "9581x", "9582x"}, 32, 64},
	{Family950, "Ascend950DT_", []string{"9591", "9592", "9595", "9596", "95A1", "95A2"}, 36, 72},
}

func developmentChips() []Chip {
	var list []Chip
	for _, d := range developmentCores {
		for _, number := range d.numbers {
			list = append(list, Chip{Name: d.prefix + number, Family: d.family, AICores: d.cube, CubeCores: d.cube, VectorCores: d.vector, Development: true})
		}
	}
	return list
}

// products are cards and machines by the name on the box. Only those with one chip
// lead to it; for the others the family is known.
var products = []struct {
	name   string
	chip   string
	family FamilyName
}{
	{name: "Atlas 300I Duo", chip: "Ascend310P3"},
	{name: "Atlas 300I Pro", chip: "Ascend310P3"},
	{name: "Atlas 300V", chip: "Ascend310P3"},
	{name: "Atlas 300V Pro", chip: "Ascend310P3"},
	{name: "Atlas 200I DK A2", chip: "Ascend310B4"},
	{name: "Atlas 200I A2", family: Family310B},
	{name: "Atlas 500 A2", family: Family310B},
	{name: "Atlas 300I A2", family: Family910B},
	{name: "Atlas 300T A2", family: Family910B},
	{name: "Atlas 800I A2", family: Family910B},
	{name: "Atlas 800T A2", family: Family910B},
	{name: "Atlas 900 A2 PoD", family: Family910B},
	{name: "Atlas A2", family: Family910B},
	{name: "A2", family: Family910B},
	{name: "Atlas 800I A3", family: FamilyA3},
	{name: "Atlas 800T A3", family: FamilyA3},
	{name: "Atlas 900 A3 SuperPoD", family: FamilyA3},
	{name: "Atlas A3", family: FamilyA3},
	{name: "A3", family: FamilyA3},
	{name: "Ascend910C", family: FamilyA3},
	{name: "Ascend950PR", family: Family950},
	{name: "Ascend950DT", family: Family950},
	{name: "Atlas 200 DK", chip: "Ascend310"},
	{name: "Atlas 300I", chip: "Ascend310"},
	{name: "Atlas 300T", family: Family910},
}
