s#/nowhere/x.npy: No such file or directory#/nowhere/x.npy: Path not found#
