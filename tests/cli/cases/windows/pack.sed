# Directories are read in the order of names.
/pack create none.kpack/ {
    n
    s/targets are portable, fake-0/targets are fake-0, portable/
}
