s/run chmod 600 on it/let nobody but yourself read it, with icacls/
# What Wine makes of an access list that names its user alone.
s/^600$/750/
