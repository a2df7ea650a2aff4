module transect-docking-go

go 1.24
