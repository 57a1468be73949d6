s#/nowhere/x.bin: No such file or directory#/nowhere/x.bin: Path not found#
