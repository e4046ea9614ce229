import sys
from pathlib import Path

# Scripts beside the package.
sys.path.insert(0, str(Path(__file__).parent.parent))
