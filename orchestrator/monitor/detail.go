package monitor

import "github.com/lakeweir/lakeweir/catalog/registry"

// Detail is the verdict on one table with its past.
type Detail struct {
	Table  Table
	Source Source
	*registry.Detail
}

// JudgeTable is Judge for one table.
func JudgeTable(d *registry.Detail) *Detail {
	return &Detail{Table: judgeTable(&d.Table, d.Source.Worker, d.Now), Source: judgeSource(d.Source, d.Now), Detail: d}
}
